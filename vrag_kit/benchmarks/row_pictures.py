"""Pictures that lie in the rows of a data set, written once to files of their own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from vrag_kit.benchmarks.images import SUFFIXES
from vrag_kit.errors import VragError
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.workspace import path as project_path

STORE = "runs/row_pictures"
"""Where the files are unless another folder is named, from the project's root."""
_RULE = 1
"""Counts the ways in which what is written has changed."""


def picture_store(cache_dir: Path | str | None) -> Path:
    """The folder of the files."""
    return Path(cache_dir).expanduser() if cache_dir else project_path(STORE)


def encoded_picture(value: object) -> bytes:
    """The encoded picture of a field: an object with `bytes`, or the bytes; b"" where
    there is none.
    """
    data = value.get("bytes") if isinstance(value, dict) else value
    return data if isinstance(data, bytes) else b""


def picture_name(value: object) -> str:
    """The name of the file for the picture of a field: a hash of its bytes; "" for a
    field without a picture.
    """
    data = encoded_picture(value)
    if not data:
        return ""
    told = str(value.get("path") or "") if isinstance(value, dict) else ""
    suffix = PurePosixPath(told).suffix.lower()
    known = suffix if suffix in SUFFIXES else ".png"
    return f"{hashlib.sha256(data).hexdigest()[:40]}{known}"


def keep_picture(value: object, store: Path) -> str:
    """Write the picture of a field to `store` unless it is there; its `picture_name`.

    It is sure to be on the disk once `read_once` has noted it.
    """
    name = picture_name(value)
    data = encoded_picture(value)
    path = store / name
    if name and (not path.is_file() or path.stat().st_size != len(data)):
        store.mkdir(parents=True, exist_ok=True)
        part = store / f".{name}.{os.getpid()}.part"
        part.write_bytes(data)
        part.replace(path)
    return name


def read_once(
    files: Sequence[Path], store: Path, what: str, read: Callable[[], list[Any]]
) -> list[Any]:  # Any: rows as `read` gives them, and JSON gives them back
    """What `read` found in these files, lists of plain values; kept in `store`, so that
    rows with pictures are read once, as long as no file changes. The first value of
    each row is the list of the names of its pictures in `store`.

    Raises `VragError` for a store that cannot be written.
    """
    note = store / ".read" / f"{_digest(files, what)}.json"
    if note.is_file():
        kept: list[Any] = json.loads(note.read_text(encoding="utf-8"))
        names = set(chain.from_iterable(row[0] for row in kept))
        if all((store / name).is_file() for name in names):
            return kept
    try:
        with one_at_a_time(store, f"reading {what}"):
            rows = read()
            os.sync()  # once for thousands of pictures: each alone takes 10 ms
            write_file(note, json.dumps(rows, ensure_ascii=False))
    except OSError as error:
        raise VragError(
            f"{store}: cannot be written ({error.strerror}); pictures that lie in rows are kept"
            " there. Name another folder by `cache_dir`."
        ) from error
    return rows


def _digest(files: Sequence[Path], what: str) -> str:
    """Changes as soon as one of the files does."""
    digest = hashlib.sha256(f"{_RULE} {what}".encode())
    for path in files:
        stat = path.stat()
        digest.update(f"{path.absolute()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]
