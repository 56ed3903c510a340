"""Fetch MRAG-Bench's rows from the hub, and its corpus from an archive: a manual download or
a URL.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.benchmarks.mrag_bench import CORPUS
from vrag_kit.benchmarks.mrag_bench_rows import find_shards
from vrag_kit.errors import VragError
from vrag_kit.fetching.archives import DAMAGED, Member, iter_members, write_atomically
from vrag_kit.fetching.hub import download_from_hub
from vrag_kit.fetching.search import LARGEST_IMAGE, Archive, open_archive
from vrag_kit.files import escapes_folder, lock_folder
from vrag_kit.log import progress

ROWS = "uclanlp/MRAG-Bench@43620fd"
"""The published rows, in the revision that was current when this was written."""
CORPUS_PAGE = "https://drive.google.com/file/d/1atwkNXH3aEtCLuqimZoB1Mifj5CwL3CL"
"""The authors' download page for the archive of the corpus (3.7 GB)."""
_MB = 1_000_000


@dataclass(slots=True)
class CorpusFetchReport:
    """The result of `fetch_corpus`."""

    had: int = 0  # pictures there before, of the size in the archive
    extracted: int = 0
    refused: list[str] = field(default_factory=list)  # "<member>: <why>"

    def __str__(self) -> str:
        lines = [f"corpus: {self.had:,} pictures were there, {self.extracted:,} extracted"]
        lines += [f"refused: {each}" for each in self.refused[:20]]
        return "\n".join(lines)


def fetch_rows(rows: str, to: Path) -> list[Path]:
    """Fetch the shards of a hub data set, "<owner>/<name>@<revision>", to `to`/data.

    Existing shards are not fetched again; returns the paths of all. Raises `VragError` if the
    download fails, and for missing shards.
    """
    download_from_hub(rows, to, ["data/*.parquet"])
    return find_shards(to)


def fetch_corpus(archive: str, to: Path) -> CorpusFetchReport:
    """Extract all images of an archive to `to`/image_corpus.

    The archive is .zip, .tar.gz or .tar, a file or an http(s) URL; its folders are ignored.
    An existing file of the same size stays. Each image gets its name only when it is
    complete, and an interrupted run is simply run again. Raises `VragError` for an unreadable
    archive, such as the confirmation page of Google Drive.
    """
    fetched = CorpusFetchReport()
    folder = to / CORPUS
    with lock_folder(folder, "fetching the corpus"), open_archive(archive) as file:
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


def _extract(file: Archive, folder: Path, fetched: CorpusFetchReport) -> None:
    """Write all pictures of the archive that are not there."""
    seen: set[str] = set()
    length = file.seek(0, io.SEEK_END)
    bar = progress(f"reading {Path(str(file.name)).name}", length // _MB, "MB")
    for member in iter_members(file, CORPUS_PAGE):
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
            write_atomically(target, member.pieces())
            fetched.extracted += 1
    bar.close()


def _problem(member: Member, plain: str, seen: set[str]) -> str:
    """Why a member cannot be a picture of the corpus; "" when it can."""
    if escapes_folder(member.name):
        return "its name points outside the folder"
    if plain in seen:
        return "a picture of this name came before"
    if member.size > LARGEST_IMAGE:
        return f"{member.size:,} bytes, more than the {LARGEST_IMAGE:,} that a picture may have"
    return ""
