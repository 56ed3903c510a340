"""Read the members of a gzip tar in order, from the beginning or from a resume point.

Resume points are recorded regularly, and another process can continue from one.
"""

from __future__ import annotations

import io
import struct
import tarfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO

from indexed_gzip import IndexedGzipFile, ZranError
from pydantic import ConfigDict

from vrag_kit.errors import VragError

SPAN_BYTES = 128 << 20
"""Bytes of the archive after which a resume point is recorded …"""
SPAN_SECONDS = 20.0
"""… or seconds, whichever comes first."""
_CHUNK = 1 << 18  # bytes of a member that are read at a time
_SIZES = {"spacing": 1 << 18, "buffer_size": 1 << 20, "readbuf_size": 1 << 16}
"""Bytes between two points where decompression can begin, and of indexed_gzip's buffers."""
# of an index file of indexed_gzip, as its documentation gives them
_HEAD = struct.Struct("<5sBBQQIII")  # the last two: bytes of a window, number of points
_POINT = struct.Struct("<QQBB")  # offset in the archive and in the tar; bits; has a window


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A position from which reading a tar can resume."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    offset: int = 0
    """Offset of a member's header in the uncompressed tar."""
    index: bytes = b""
    """The two or more decompression points around it, in the format of indexed_gzip; empty at
    the beginning.
    """

    @property
    def reached(self) -> int:
        """Number of bytes of the archive that need not be read again."""
        return int(_POINT.unpack_from(self.index, _HEAD.size)[0]) if self.index else 0


Members = Generator[tuple[tarfile.TarInfo, Callable[[], Iterator[bytes]]], None, None]
"""Yields the header of each member, and a function that yields its content in chunks; call it
before requesting the next member.
"""


def read_members(
    file: IO[bytes], name: str, point: ResumePoint, save: Callable[[ResumePoint], None]
) -> Members:
    """Yield the members from `point` to the end, and pass resume points to `save`.

    `save` gets the position of the first unfinished member, regularly and when reading ends
    early. Memory does not grow with the archive. Raises `VragError`, naming the archive, if
    it is not gzip, not a tar, truncated or damaged.
    """
    if not point.offset and (head := file.read(2)) != b"\x1f\x8b":
        raise VragError(
            f"{name}: not a gzip file (it begins with {head!r}, expected b'\\x1f\\x8b'). Give the"
            " .tar.gz archive."
        )
    following: ResumePoint | None = point
    while following is not None:
        following = yield from _read_span(file, name, following, save)


def _read_span(
    file: IO[bytes], name: str, point: ResumePoint, save: Callable[[ResumePoint], None]
) -> Generator[tuple[tarfile.TarInfo, Callable[[], Iterator[bytes]]], None, ResumePoint | None]:
    """Yield members for a while; returns the next span's point, None at the end.

    Each span has an index of its own, because one index would grow to gigabytes.
    """
    with _clear_errors(name), IndexedGzipFile(fileobj=file, **_SIZES) as unpacked:
        if point.index:
            unpacked.import_index(fileobj=io.BytesIO(point.index))
            unpacked.seek(point.offset)
        end = file.tell() + SPAN_BYTES
        deadline = time.monotonic() + SPAN_SECONDS
        offset = point.offset
        try:
            tar = tarfile.TarFile(fileobj=unpacked)
            while (info := tar.next()) is not None:
                # else one entry for each of the millions would stay
                tar.members.clear()  # type: ignore[attr-defined]  # missing in typeshed
                yield info, partial(_iter_chunks, tar, info, name)
                offset = tar.offset
                is_time = file.tell() >= end or time.monotonic() >= deadline
                if is_time and (reached := _resume_point(unpacked, offset)):
                    return reached
            _check_end(unpacked, tar.offset, name)
            return None
        finally:
            if reached := _resume_point(unpacked, offset):
                save(reached)


def _iter_chunks(tar: tarfile.TarFile, info: tarfile.TarInfo, name: str) -> Iterator[bytes]:
    with _clear_errors(name):
        stream = tar.extractfile(info)
        while stream is not None and (chunk := stream.read(_CHUNK)):
            yield chunk


def _check_end(unpacked: IndexedGzipFile, offset: int, name: str) -> None:
    """A tar ends with a block of zeros: without it the archive is cut off, which
    neither gzip nor tar report by themselves.
    """
    unpacked.seek(offset)
    block = unpacked.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or any(block):
        raise VragError(
            f"{name}: cut off or damaged: the tar has neither a member nor its end mark at byte"
            f" {offset:,} (uncompressed). Download the archive again."
        )


def _resume_point(unpacked: IndexedGzipFile, offset: int) -> ResumePoint | None:
    """The offset of a header with the last two points before it; None if it has fewer."""
    file = io.BytesIO()
    unpacked.export_index(fileobj=file)
    index = file.getvalue()
    head = _HEAD.unpack_from(index)
    window, count = head[-2:]
    windows_start = _HEAD.size + count * _POINT.size
    points = list(_POINT.iter_unpack(index[_HEAD.size : windows_start]))
    first = sum(point[1] <= offset for point in points) - 2
    if first < 0:
        return None
    kept = points[first:]
    start = windows_start + window * sum(point[3] for point in points[:first])
    windows = index[start : start + window * sum(point[3] for point in kept)]
    packed = b"".join(_POINT.pack(*point) for point in kept)
    return ResumePoint(offset, _HEAD.pack(*head[:-1], len(kept)) + packed + windows)


@contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Convert what libraries raise to one `VragError`; an error or an interruption that
    came up from the file itself passes through.
    """
    try:
        yield
    except (OSError, EOFError, tarfile.TarError) as error:
        if isinstance(error, ZranError) and error.__cause__ is not None:
            raise error.__cause__ from None
        raise VragError(
            f"{name}: cut off, damaged, or no .tar.gz ({error}). Compare its size and checksum"
            " with what its authors publish, or download it again."
        ) from error
