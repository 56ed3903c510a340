"""One shard of embeddings on disk: vectors, and in columns whose they are.

    <shard>.npy      float32, shape (rows, d)
    <shard>.arrow    columns doc_id, stamp and content, a row for each vector; written
                     last, it makes the shard count

A shard is called by its documents and their stamps, so that one that is made twice, be
it at once, is one shard, whole. Those of older versions have <shard>.json instead, a
list of (doc_id, stamp).
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vrag_kit.errors import VragError
from vrag_kit.files import write_file

SUFFIXES = (".arrow", ".json")
"""Endings of the files that say whose the vectors are."""


class Rows(NamedTuple):
    """Whose the vectors of a shard are; texts, a column each."""

    doc_ids: np.ndarray
    stamps: np.ndarray
    """Change whenever what is encoded may have changed."""
    contents: np.ndarray
    """Hash of what is encoded; "" where it is not known."""

    @classmethod
    def of(cls, doc_ids: Sequence[str], stamps: Sequence[str], contents: Sequence[str]) -> Rows:
        """Columns of lists."""
        return cls(*(np.array(list(each), object) for each in (doc_ids, stamps, contents)))


def shard_name(doc_ids: Sequence[str], stamps: Sequence[str]) -> str:
    """What the shard of these documents is called."""
    told = json.dumps([list(doc_ids), list(stamps)])
    return f"shard-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def is_shard(folder: Path, shard: str) -> bool:
    """Whether a shard is there, as this version writes it."""
    return (folder / f"{shard}.arrow").is_file()


def list_shards(folder: Path) -> list[Path]:
    """The index file of each shard, by name."""
    found = [path for path in folder.glob("shard-*") if path.suffix in SUFFIXES]
    return sorted(found, key=lambda path: path.stem)


def write_shard(folder: Path, rows: Rows, vectors: np.ndarray) -> str:
    """Keep vectors, shape (n, d), under their rows; returns the shard's name."""
    shard = folder / shard_name(rows.doc_ids.tolist(), rows.stamps.tolist())
    content = io.BytesIO()
    np.save(content, vectors, allow_pickle=False)
    write_file(shard.with_suffix(".npy"), content.getvalue())
    write_file(shard.with_suffix(".arrow"), _columns(rows))
    return shard.name


def _columns(rows: Rows) -> bytes:
    names = ("doc_id", "stamp", "content")
    columns = [pa.array(column, pa.string()) for column in rows]
    table = pa.table(dict(zip(names, columns, strict=True)))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as file:
        file.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_rows(index: Path) -> tuple[Rows, int] | None:
    """Whose the vectors of a shard are, and their number of components; None for a
    damaged shard, which is set aside.

    Raises `VragError` for a file that is there but cannot be opened: that says nothing
    about what is in it.
    """
    try:
        rows = _read_json(index) if index.suffix == ".json" else _read_arrow(index)
        count, width = open_vectors(index.parent, index.stem).shape
        if count != len(rows.doc_ids):
            raise ValueError(f"{count} vectors for {len(rows.doc_ids)} documents")
    except (ValueError, KeyError, TypeError, EOFError, FileNotFoundError) as error:
        _set_aside(index, error)
        return None
    except OSError as error:
        raise VragError(
            f"{error.filename or index}: this shard of embeddings is there, but cannot be"
            f" opened ({error.strerror or error}). Nothing was changed; check its rights, the"
            " disk and the number of files that may be open, then search again."
        ) from error
    return rows, int(width)


def _read_arrow(index: Path) -> Rows:
    # bytes first: an error of the disk has its number then, and damage is a ValueError
    with pa.ipc.open_file(pa.BufferReader(index.read_bytes())) as file:
        table = file.read_all()
    return Rows(*(table[name].to_numpy() for name in ("doc_id", "stamp", "content")))


def _read_json(index: Path) -> Rows:
    pairs = json.loads(index.read_text(encoding="utf-8"))["rows"]
    doc_ids = [str(doc_id) for doc_id, _ in pairs]
    return Rows.of(doc_ids, [str(stamp) for _, stamp in pairs], [""] * len(pairs))


def open_vectors(folder: Path, shard: str) -> np.ndarray:
    """A shard's vectors, float32, shape (rows, d), read where they are looked at; the
    file is open as long as the array lives.
    """
    path = folder / f"{shard}.npy"
    vectors: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return vectors.view(np.ndarray)


def _set_aside(index: Path, error: Exception) -> None:
    vectors = index.with_suffix(".npy")
    for path in (index, vectors):
        if path.exists():
            path.rename(path.with_name(f"{path.name}.damaged"))
    print(
        f"{vectors}: damaged shard ({error}), set aside as *.damaged; its documents are embedded"
        " again",
        flush=True,
    )
