"""Read the files of an archive, .zip, .tar.gz or .tar, from a file or a URL."""

from __future__ import annotations

import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO

from vrag_kit.errors import VragError
from vrag_kit.fetching.http import RangeReader
from vrag_kit.fetching.image_folder import FetchReport, write_atomically
from vrag_kit.fetching.resumable_tar import ResumePoint, read_members
from vrag_kit.files import escapes_folder, lock_folder
from vrag_kit.log import progress
from vrag_kit.types import Json

_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, NotImplementedError, EOFError)
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


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file of an archive; iterate over `chunks` before the next member."""

    name: str
    size: int
    chunks: Iterator[bytes]


@contextmanager
def open_archive(source: Path | str) -> Iterator[Archive]:
    """Open an archive, a file or an http(s) URL.

    Raises `VragError` if it cannot be read, and for what reading a truncated or damaged
    archive raises; no message contains what may be a password or key.
    """
    address = str(source)
    with ExitStack() as stack:
        if "://" in address:
            remote = stack.enter_context(RangeReader(address))
            version = {"name": remote.name, **asdict(remote.version)}
            file = stack.enter_context(io.BufferedReader(remote))
            archive = Archive(file, remote.name, version)
        else:
            archive = _open_local(address)
            stack.enter_context(archive.file)
        try:
            yield archive
        except _DAMAGED as error:
            raise VragError(
                f"{archive.name}: cut off or damaged ({error}). What was extracted stays; download"
                " the archive again."
            ) from error


def _open_local(address: str) -> Archive:
    path = Path(address).expanduser()
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        shown = re.sub(r"^/*[^/:]*:[^/]*@", "", address.partition("?")[0])
        raise VragError(
            f"archive {shown}: cannot be read ({error.strerror}). Give the path of the archive, or"
            " its URL."
        ) from error
    status = path.stat()
    version = {"name": str(path.resolve()), "size": status.st_size, "modified": status.st_mtime_ns}
    return Archive(file, str(path), version)


def iter_members(archive: Archive, page: str) -> Iterator[Member]:
    """Yield the regular files of an archive, in order, with a progress bar.

    Raises `VragError` for anything but an archive; for a web page, its message says to
    download the archive from `page`.
    """
    file = archive.file
    head = file.read(512)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        members = _of_tar_gz(archive)
    elif head.startswith(b"PK"):
        members = _of_zip(file)
    elif head[257:262] == b"ustar":
        members = _of_tar(file)
    else:
        hint = "Download it again, and give the file."
        if head.lstrip()[:1] == b"<":
            hint = f"It is a web page: download the archive from {page} in a browser."
        raise VragError(
            f"{archive.name}: no archive that can be read (it begins with {head[:12]!r}); expected"
            f" .zip, .tar.gz or .tar. {hint}"
        )
    with progress(f"reading {Path(archive.name).name}", archive.version["size"] // MB, "MB") as bar:
        for member in members:
            bar.update(max(0, file.tell() // MB - bar.n))
            yield member


def copy_files(source: Path | str, to: Path, patterns: Sequence[str], page: str) -> FetchReport:
    """Copy the files that match `patterns`, such as "data/*.parquet", to the folder `to`.

    `source` is a folder, or an archive as `open_archive` opens it; its folders are ignored,
    and those of the patterns created. An existing file of the same size stays; each file gets
    its name only when it is complete. Names that point outside and second files of one name
    are refused. Raises `VragError` for an unreadable source, or one without such files; for a
    web page, its message names `page`.
    """
    folder = Path(source).expanduser()
    with lock_folder(to, "fetching files"):
        if folder.is_dir():
            return _copy_members(str(folder), _of_folder(folder), to, patterns)
        with open_archive(source) as archive:
            return _copy_members(archive.name, iter_members(archive, page), to, patterns)


def _copy_members(
    name: str, members: Iterator[Member], to: Path, patterns: Sequence[str]
) -> FetchReport:
    had = 0
    refused: list[str] = []
    copied: dict[str, str] = {}
    folders = {PurePosixPath(each).name: PurePosixPath(each).parent for each in patterns}
    for member in members:
        path = PurePosixPath(member.name)
        folder = next((folders[each] for each in folders if fnmatch(path.name.lower(), each)), None)
        if folder is None or path.name.startswith("."):
            continue
        if escapes_folder(member.name):
            refused.append(f"{member.name}: its name points outside the folder")
            continue
        if path.name in copied:
            refused.append(f"{member.name}: {name} holds also {copied[path.name]}")
            continue
        copied[path.name] = member.name
        target = to / folder / path.name
        if target.is_file() and target.stat().st_size == member.size:
            had += 1
        else:
            write_atomically(target, member.chunks)
    if not copied:
        raise VragError(f"{name}: no files in it that match {', '.join(patterns)}.")
    fetched = len(copied) - had
    return FetchReport(wanted=len(copied), had=had, fetched=fetched, refused=tuple(refused))


def _of_folder(folder: Path) -> Iterator[Member]:
    for path in sorted([*folder.glob("*"), *folder.glob("data/*")]):
        if path.is_file():
            with path.open("rb") as file:
                name = path.relative_to(folder).as_posix()
                yield Member(name, path.stat().st_size, _iter_chunks(file))


def _of_tar_gz(archive: Archive) -> Iterator[Member]:
    for info, chunks in read_members(archive.file, archive.name, ResumePoint(), lambda _: None):
        if info.isreg():
            yield Member(info.name, info.size, chunks())


def _of_zip(file: IO[bytes]) -> Iterator[Member]:
    with zipfile.ZipFile(file) as opened:
        for info in opened.infolist():
            if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16):
                yield Member(info.filename, info.file_size, _unzip(opened, info))


def _of_tar(file: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=file, mode="r:") as opened:
        for info in opened:
            stream = opened.extractfile(info) if info.isreg() else None
            if stream is not None:
                yield Member(info.name, info.size, _iter_chunks(stream))


def _unzip(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with opened.open(info) as stream:
        yield from _iter_chunks(stream)


def _iter_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: stream.read(_CHUNK), b"")
