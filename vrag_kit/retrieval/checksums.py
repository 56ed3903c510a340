"""Checksums of files, cached by path, size, modification time and inode."""

from __future__ import annotations

import hashlib
import zlib
from functools import cache
from pathlib import Path

_BLOCK = 1 << 22
Version = tuple[int, int, int]


def file_version(path: Path) -> Version:
    """Returns size, modification time and inode of a file, the same until it is written."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def file_crc32(path: Path) -> str:
    """Returns eight hexadecimal digits: fast for gigabytes; for damage, not for forgery."""
    return _crc32(path, file_version(path))


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 in hexadecimal, as `sha256sum` prints it."""
    return _sha256(path, file_version(path))


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
