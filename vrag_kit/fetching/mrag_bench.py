"""MRAG-Bench's rows from the hub, and its corpus out of an archive: a file that was
downloaded by hand, or an address.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.benchmarks.mrag_bench import CORPUS
from vrag_kit.benchmarks.mrag_bench_rows import find_shards
from vrag_kit.errors import VragError
from vrag_kit.fetching.hub import from_hub
from vrag_kit.fetching.search import LARGEST_IMAGE, Archive, open_archive
from vrag_kit.fetching.unpacking import DAMAGED, Member, members, put
from vrag_kit.files import leaves, one_at_a_time
from vrag_kit.progress import progress

ROWS = "uclanlp/MRAG-Bench@43620fd"
"""The published rows, as they were when this was written."""
CORPUS_PAGE = "https://drive.google.com/file/d/1atwkNXH3aEtCLuqimZoB1Mifj5CwL3CL"
"""Where the authors offer the archive of the corpus (3.7 GB)."""
_MB = 1_000_000


@dataclass(slots=True)
class CorpusFetched:
    """What `fetch_corpus` found and did."""

    had: int = 0  # pictures there before, of the size in the archive
    extracted: int = 0
    refused: list[str] = field(default_factory=list)  # "<member>: <why>"

    def __str__(self) -> str:
        lines = [f"corpus: {self.had:,} pictures were there, {self.extracted:,} extracted"]
        lines += [f"refused: {each}" for each in self.refused[:20]]
        return "\n".join(lines)


def fetch_rows(rows: str, to: Path) -> list[Path]:
    """The shards of a data set of the hub, "<owner>/<name>@<revision>", in `to`/data;
    those that are there already are not fetched again.

    Raises `VragError` for a name that cannot be fetched, and for shards that are
    missing.
    """
    from_hub(rows, to, ["data/*.parquet"])
    return find_shards(to)


def fetch_corpus(archive: str, to: Path) -> CorpusFetched:
    """Extract all pictures of an archive (.zip, .tar.gz or .tar; a file or an http(s)
    URL) to `to`/image_corpus, whatever folders it has; a file of the right size that is
    there stays.

    Each picture gets its name once it is complete, so that a run that was interrupted is
    simply run again. Raises `VragError` for an archive that cannot be read, such as the
    page on which Google Drive asks whether one really wants it.
    """
    fetched = CorpusFetched()
    folder = to / CORPUS
    with one_at_a_time(folder, "fetching the corpus"), open_archive(archive) as file:
        try:
            _extract(file, folder, fetched)
        except DAMAGED as error:
            raise VragError(
                f"{file.name}: cut off or damaged ({error}). What was extracted stays in {folder};"
                " download the archive again."
            ) from error
    if not fetched.had + fetched.extracted:
        raise VragError(f"{file.name}: no pictures in it; expected MRAG-Bench's image_corpus.")
    return fetched


def _extract(file: Archive, folder: Path, fetched: CorpusFetched) -> None:
    """Write all pictures of the archive that are not there."""
    seen: set[str] = set()
    length = file.seek(0, io.SEEK_END)
    bar = progress(f"reading {Path(str(file.name)).name}", length // _MB, "MB")
    for member in members(file, CORPUS_PAGE):
        bar.set_postfix_str(f"{len(seen):,} pictures", refresh=False)
        bar.update(max(0, file.tell() // _MB - bar.n))
        plain = PurePosixPath(member.name).name
        if PurePosixPath(plain).suffix.lower() not in SUFFIXES or plain.startswith("."):
            continue
        if problem := _problem(member, plain, seen):
            fetched.refused.append(f"{member.name}: {problem}")
            continue
        seen.add(plain)
        target = folder / plain
        if target.is_file() and target.stat().st_size == member.size:
            fetched.had += 1
        else:
            put(target, member.pieces())
            fetched.extracted += 1
    bar.close()


def _problem(member: Member, plain: str, seen: set[str]) -> str:
    """Why a member cannot be a picture of the corpus; "" when it can."""
    if leaves(member.name):
        return "its name points outside the folder"
    if plain in seen:
        return "a picture of this name came before"
    if member.size > LARGEST_IMAGE:
        return f"{member.size:,} bytes, more than the {LARGEST_IMAGE:,} that a picture may have"
    return ""
