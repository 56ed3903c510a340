"""Checksums of files, read once for each size and time that a file has."""

from __future__ import annotations

import hashlib
import zlib
from functools import cache
from pathlib import Path

_BLOCK = 1 << 22
Version = tuple[int, int, int]


def version_of(path: Path) -> Version:
    """Size, time and inode of a file: the same as long as nobody writes to it."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def file_crc32(path: Path) -> str:
    """Eight hexadecimal digits: fast enough for gigabytes; for damage, not for forgery."""
    return _crc32(path, version_of(path))


def file_sha256(path: Path) -> str:
    """As `sha256sum` prints it."""
    return _sha256(path, version_of(path))


@cache
def _crc32(path: Path, version: Version) -> str:
    found = 0
    with path.open("rb") as file:  # not mapped: a bad sector is an error then, and no signal
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return f"{found:08x}"


@cache
def _sha256(path: Path, version: Version) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
