"""Rows that were read once, and files of the images that are stored in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.benchmarks.rows import RAISE, Problems, encoded_image
from vrag_kit.files import lock_folder, write_file

STORE = "runs/row_pictures"
"""Default folder of the image files, relative to the project's root."""
_RULE = 3
"""Counts the ways in which what is written has changed."""


def cache_image(value: object, store: Path, default: str = ".png") -> str:
    """Write the image of a field to `store` unless it is there; returns its file name.

    The name is a hash of the bytes and the suffix of the field's path, or `default`; "" for a field
    without an image. The file is guaranteed to be on disk only after `cached_rows` has stored its
    rows.
    """
    data = encoded_image(value)
    if not data:
        return ""
    path = str(value.get("path") or "") if isinstance(value, dict) else ""
    suffix = PurePosixPath(path).suffix.lower()
    known = suffix if suffix in SUFFIXES else default
    name = f"{hashlib.sha256(data).hexdigest()[:40]}{known}"
    file = store / name
    if not file.is_file() or file.stat().st_size != len(data):
        store.mkdir(parents=True, exist_ok=True)
        part = store / f".{name}.{os.getpid()}.part"
        part.write_bytes(data)
        part.replace(file)
    return name


def cached_rows(
    files: Sequence[Path],
    store: Path,
    what: str,
    read: Callable[[], list[Any]],
    problems: Problems = RAISE,
) -> list[Any]:  # Any: rows as `read` gives them, and JSON gives them back
    """Return the rows that `read` gives for `files`, cached in `store` until a file changes.

    A row is a list of plain values; its first value is the list of its image names in `store`.
    Rows are read in any case, and not stored, where problems are collected. Raises `OSError`
    if `store` cannot be written.
    """
    if problems.collect:
        return read()
    note = store / ".read" / f"{files_version(files, what)}.json"
    if note.is_file():
        rows: list[Any] = json.loads(note.read_text(encoding="utf-8"))
        names = set(chain.from_iterable(row[0] for row in rows))
        if all((store / name).is_file() for name in names):
            return rows
    with lock_folder(store):
        rows = read()
        os.sync()  # once for thousands of images: each alone takes 10 ms
        write_file(note, json.dumps(rows, ensure_ascii=False))
    return rows


def files_version(files: Sequence[Path], what: str) -> str:
    """Return a hash that changes as soon as one of the files does."""
    digest = hashlib.sha256(f"{_RULE} {what}".encode())
    for path in files:
        stat = path.stat()
        digest.update(f"{path.absolute()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]
