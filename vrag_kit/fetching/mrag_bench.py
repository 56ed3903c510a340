"""MRAG-Bench's rows from the hub, and its corpus out of an archive: a file that was
downloaded by hand, or an address.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.benchmarks.mrag_bench import CORPUS
from vrag_kit.benchmarks.mrag_bench_rows import find_shards
from vrag_kit.errors import VragError
from vrag_kit.fetching.archive import Place, read_members
from vrag_kit.fetching.filling import writing
from vrag_kit.fetching.search import LARGEST_IMAGE, Archive, open_archive
from vrag_kit.files import one_at_a_time
from vrag_kit.progress import Progress

ROWS = "uclanlp/MRAG-Bench@43620fd"
"""The published rows, as they were when this was written."""
CORPUS_PAGE = "https://drive.google.com/file/d/1atwkNXH3aEtCLuqimZoB1Mifj5CwL3CL"
"""Where the authors offer the archive of the corpus (3.7 GB)."""
_PIECE = 1 << 18
_MB = 1_000_000

_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, NotImplementedError, EOFError)


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file of an archive; `pieces` reads it, before the next is asked for."""

    name: str
    size: int
    pieces: Callable[[], Iterator[bytes]]


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
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(
            rows.partition("@")[0],
            repo_type="dataset",
            revision=rows.partition("@")[2] or None,
            allow_patterns=["data/*.parquet"],
            local_dir=to,
        )
    except (OSError, ValueError) as error:
        raise VragError(
            f"rows {rows!r} cannot be fetched from the Hugging Face hub:"
            f" {str(error).strip().splitlines()[0]} Check name and network; what was fetched"
            f" stays in {to}, and the same command goes on."
        ) from error
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
        except _DAMAGED as error:
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
    progress = Progress(f"reading {Path(str(file.name)).name}", length // _MB, "MB")
    for member in _members(file):
        progress.reached(file.tell() // _MB, f"{len(seen):,} pictures found")
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
            _put(target, member.pieces())
            fetched.extracted += 1
    progress.end()


def _problem(member: Member, plain: str, seen: set[str]) -> str:
    """Why a member cannot be a picture of the corpus; "" when it can."""
    parts = PurePosixPath(member.name).parts
    if member.name.startswith("/") or ".." in parts or "\\" in member.name:
        return "its name points outside the folder"
    if plain in seen:
        return "a picture of this name came before"
    if member.size > LARGEST_IMAGE:
        return f"{member.size:,} bytes, more than the {LARGEST_IMAGE:,} that a picture may have"
    return ""


def _put(target: Path, pieces: Iterator[bytes]) -> None:
    part = target.with_name(f".{target.name}.part")
    try:
        with writing(target), part.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        with writing(target):
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _members(file: Archive) -> Iterator[Member]:
    """The regular files of an archive, in order."""
    name = str(file.name)
    file.seek(0)
    head = file.read(512) or b""
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        for info, pieces in read_members(file, name, Place(), lambda _: None):
            if info.isreg():
                yield Member(info.name, info.size, pieces)
    elif head.startswith(b"PK"):
        yield from _of_zip(file)
    elif head[257:262] == b"ustar":
        yield from _of_tar(file)
    else:
        hint = "Download it again, and give the file."
        if head.lstrip()[:1] == b"<":
            hint = f"It is a web page: download the archive from {CORPUS_PAGE} in a browser."
        raise VragError(
            f"{name}: no archive that can be read (it begins with {head[:12]!r}); expected .zip,"
            f" .tar.gz or .tar. {hint}"
        )


def _of_zip(file: Archive) -> Iterator[Member]:
    with zipfile.ZipFile(cast("IO[bytes]", file)) as archive:
        for info in archive.infolist():
            if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16):
                pieces = partial(_unzipped, archive, info)
                yield Member(info.filename, info.file_size, pieces)


def _of_tar(file: Archive) -> Iterator[Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as archive:
        for info in archive:
            stream = archive.extractfile(info) if info.isreg() else None
            if stream is not None:
                yield Member(info.name, info.size, partial(_pieces, stream))


def _unzipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as stream:
        yield from _pieces(stream)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece
