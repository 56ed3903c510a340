"""Read the files of an archive: .zip, .tar.gz or .tar."""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from vrag_kit.errors import VragError
from vrag_kit.fetching.filling import catch_write_errors
from vrag_kit.fetching.resumable_tar import ResumePoint, read_members
from vrag_kit.fetching.search import Archive

DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, NotImplementedError, EOFError)
"""Exceptions that reading a truncated or damaged archive raises."""
_PIECE = 1 << 18


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file of an archive; call `pieces` to read it before the next member."""

    name: str
    size: int
    pieces: Callable[[], Iterator[bytes]]


def iter_members(file: Archive, page: str) -> Iterator[Member]:
    """Yield the regular files of an archive, in order.

    Raises `VragError` for anything but an archive; for a web page, its message says to
    download the archive from `page`.
    """
    name = str(file.name)
    file.seek(0)
    head = file.read(512) or b""
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        for info, pieces in read_members(file, name, ResumePoint(), lambda _: None):
            if info.isreg():
                yield Member(info.name, info.size, pieces)
    elif head.startswith(b"PK"):
        yield from _of_zip(file)
    elif head[257:262] == b"ustar":
        yield from _of_tar(file)
    else:
        hint = "Download it again, and give the file."
        if head.lstrip()[:1] == b"<":
            hint = f"It is a web page: download the archive from {page} in a browser."
        raise VragError(
            f"{name}: no archive that can be read (it begins with {head[:12]!r}); expected .zip,"
            f" .tar.gz or .tar. {hint}"
        )


def write_atomically(target: Path, pieces: Iterator[bytes]) -> None:
    """Write a file, which gets its name only when it is complete."""
    part = target.with_name(f".{target.name}.part")
    try:
        with catch_write_errors(target), part.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        with catch_write_errors(target):
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


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
                yield Member(info.name, info.size, partial(iter_chunks, stream))


def _unzipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as stream:
        yield from iter_chunks(stream)


def iter_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the rest of a stream in chunks."""
    while piece := stream.read(_PIECE):
        yield piece
