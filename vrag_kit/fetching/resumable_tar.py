"""Read the members of a gzip tar in order, from the beginning or from a resume point.

Resume points are recorded regularly, and another process can continue from one.
"""

from __future__ import annotations

import io
import struct
import tarfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import IO

from indexed_gzip import IndexedGzipFile
from pydantic import ConfigDict

SPAN_BYTES = 128 << 20
"""Bytes of the archive after which a resume point is recorded …"""
SPAN_SECONDS = 20.0
"""… or seconds, whichever comes first."""
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


Member = tuple[tarfile.TarInfo, Callable[[], bytes]]
"""A header, and a function that reads the content; call it before requesting the next member."""


def read_members(
    file: IO[bytes], point: ResumePoint, save: Callable[[ResumePoint], None]
) -> Generator[Member, None, None]:
    """Yield the members from `point` to the end, and pass resume points to `save`.

    `save` gets the position of the first unfinished member, regularly and when reading ends
    early. Memory does not grow with the archive. Raises `tarfile.ReadError` for a file that is no
    gzip and a tar that is cut off, and what tarfile and indexed_gzip raise for damaged data.
    """
    if not point.offset and (head := file.read(2)) != b"\x1f\x8b":
        raise tarfile.ReadError(f"no gzip file: it begins with {head!r}, expected b'\\x1f\\x8b'")
    following: ResumePoint | None = point
    while following is not None:
        following = yield from _read_span(file, following, save)


def _read_span(
    file: IO[bytes], point: ResumePoint, save: Callable[[ResumePoint], None]
) -> Generator[Member, None, ResumePoint | None]:
    """Yield members for a while; returns the next span's point, None at the end.

    Each span has an index of its own, because one index would grow to gigabytes.
    """
    with IndexedGzipFile(fileobj=file, **_SIZES) as unpacked:
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
                yield info, partial(_content, tar, info)
                offset = tar.offset
                is_time = file.tell() >= end or time.monotonic() >= deadline
                if is_time and (reached := _resume_point(unpacked, offset)):
                    return reached
            _check_end(unpacked, tar.offset)
            return None
        finally:
            if reached := _resume_point(unpacked, offset):
                save(reached)


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(info)
    return stream.read() if stream else b""


def _check_end(unpacked: IndexedGzipFile, offset: int) -> None:
    """A tar ends with a block of zeros: without it the archive is cut off, which
    neither gzip nor tar report by themselves.
    """
    unpacked.seek(offset)
    block = unpacked.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or any(block):
        raise tarfile.ReadError(f"neither a member nor the tar's end mark at byte {offset:,}")


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
