"""Read the files of an archive, .zip, .tar.gz or .tar, from a file or a URL."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from indexed_gzip import ZranError

from vrag_kit.errors import VragError
from vrag_kit.fetching.http import RangeReader
from vrag_kit.fetching.image_folder import FetchReport, image_folder, write_atomically
from vrag_kit.files import escapes_folder
from vrag_kit.log import progress
from vrag_kit.types import Json

_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    ZranError,
    NotImplementedError,
    EOFError,
)
"""Exceptions that reading a truncated or damaged archive raises."""
_CHUNK = 1 << 18
MB = 1_000_000
"""Bytes of a megabyte, the unit of progress bars."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An open archive, with its name in messages and what identifies its version."""

    file: IO[bytes]
    name: str
    version: Json  # name, size and time or tag


Member = tuple[str, int, Callable[[], IO[bytes] | None]]
"""(name, bytes, a function that opens it) of a regular file of an archive."""


@contextmanager
def open_archive(source: Path | str) -> Iterator[Archive]:
    """Open an archive, a file or an http(s) URL.

    Raises `VragError` if it cannot be read, and for what reading a truncated or damaged
    archive raises; no message contains what may be a password or key.
    """
    with ExitStack() as stack:
        if "://" in str(source):
            remote = stack.enter_context(RangeReader(str(source)))
            version = {"name": remote.name, **asdict(remote.version)}
            file = stack.enter_context(io.BufferedReader(remote))
            archive = Archive(file, remote.name, version)
        else:
            archive = _open_local(Path(source).expanduser())
            stack.enter_context(archive.file)
        try:
            yield archive
        except _DAMAGED as error:
            if isinstance(error, ZranError) and error.__cause__ is not None:
                raise error.__cause__ from None  # it came up from reading the file itself
            raise VragError(
                f"{archive.name}: cut off, damaged, or no such archive"
                f" ({str(error).partition(chr(10))[0]}). What was extracted stays; download the"
                " archive again."
            ) from error


def _open_local(path: Path) -> Archive:
    try:
        file, status = path.open("rb", buffering=0), path.stat()
    except OSError as error:
        raise VragError(
            f"archive {path}: cannot be read ({error.strerror}). Give the path of the archive, or"
            " its URL."
        ) from error
    version = {"name": str(path.resolve()), "size": status.st_size, "modified": status.st_mtime_ns}
    return Archive(file, str(path), version)


def copy_files(source: Path | str, to: Path, patterns: Sequence[str], page: str) -> FetchReport:
    """Copy the files that match `patterns`, such as "data/*.parquet", to the folder `to`.

    `source` is a folder, or an archive as `open_archive` opens it; its folders are ignored,
    and those of the patterns created. An existing file of the same size stays; each file gets
    its name only when it is complete. Names that point outside and second files of one name
    are refused. Raises `VragError` for an unreadable source, or one without such files; for a
    web page, its message names `page`.
    """
    folder = Path(source).expanduser()
    with image_folder(to):
        if folder.is_dir():
            return _copy_members(str(folder), _of_folder(folder), to, patterns)
        with open_archive(source) as archive:
            return _copy_members(archive.name, _of_archive(archive, page), to, patterns)


def _copy_members(
    name: str, members: Iterator[Member], to: Path, patterns: Sequence[str]
) -> FetchReport:
    had = 0
    refused: list[str] = []
    copied: dict[str, str] = {}
    folders = {PurePosixPath(each).name: PurePosixPath(each).parent for each in patterns}
    for member, size, open_member in members:
        file = PurePosixPath(member).name
        folder = next((folders[each] for each in folders if fnmatch(file.lower(), each)), None)
        if folder is None or file.startswith("."):
            continue
        if escapes_folder(member) or file in copied:
            found = f"{name} holds also {copied[file]}" if file in copied else "points outside"
            refused.append(f"{member}: {found}")
            continue
        copied[file] = member
        target = to / folder / file
        if target.is_file() and target.stat().st_size == size:
            had += 1
            continue
        if stream := open_member():
            with stream:
                write_atomically(target, iter(partial(stream.read, _CHUNK), b""))
    if not copied:
        raise VragError(f"{name}: no files in it that match {', '.join(patterns)}.")
    return FetchReport(wanted=len(copied), had=had, refused=refused)


def _of_archive(archive: Archive, page: str) -> Iterator[Member]:
    """The regular files of an archive, in order, with a progress bar."""
    file = archive.file
    head = file.read(512)
    file.seek(0)
    if head.lstrip().startswith(b"<"):
        raise VragError(
            f"{archive.name}: found a web page; expected .zip, .tar.gz or .tar. Download the"
            f" archive from {page} in a browser, and give the file."
        )
    members = _of_zip(file) if head.startswith(b"PK") else _of_tar(file)
    label, total = f"reading {Path(archive.name).name}", archive.version["size"] // MB
    with progress(None, label, total, "MB") as bar:
        for member in members:
            bar.update(max(0, file.tell() // MB - bar.n))
            yield member


def _of_folder(folder: Path) -> Iterator[Member]:
    for path in sorted([*folder.glob("*"), *folder.glob("data/*")]):
        if path.is_file():
            yield path.name, path.stat().st_size, partial(io.FileIO, path)


def _of_zip(file: IO[bytes]) -> Iterator[Member]:
    with zipfile.ZipFile(file) as opened:
        for info in opened.infolist():
            if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16):
                yield info.filename, info.file_size, partial(opened.open, info)


def _of_tar(file: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=file) as opened:
        for info in opened:
            if info.isreg():
                yield info.name, info.size, partial(opened.extractfile, info)
