"""One shard of embeddings on disk: vectors, and in columns whose they are.

    <shard>.npy      float32, shape (rows, d)
    <shard>.arrow    columns doc_id, stamp and content, a row for each vector, and the
                     checksums of both files; written last, it makes the shard count

A shard is called by its documents and their stamps, so that one that is made twice, be
it at once, is one shard, whole. A damaged one, or one without checksums, is set aside as
*.damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.checksums import Version, file_crc32, version_of
from vrag_kit.retrieval.directions import WrongLengths, wrong_lengths

DAMAGED = "shard-*.damaged"
"""Files of damaged shards that were set aside."""
_DAMAGE = ValueError, KeyError, TypeError, EOFError, OverflowError, TokenError, FileNotFoundError


class VectorSpace(NamedTuple):
    """What the vectors of a folder have in common."""

    fingerprint: str
    """Of the encoder that made them."""
    normalized: bool


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
    """Whether a shard is there."""
    return (folder / f"{shard}.arrow").is_file()


def list_shards(folder: Path) -> list[Path]:
    """The index file of each shard, by name."""
    return sorted(folder.glob("shard-*.arrow"))


def write_shard(folder: Path, rows: Rows, vectors: np.ndarray, encoder: str) -> str:
    """Keep vectors, shape (n, d), under their rows; returns the shard's name. `encoder`:
    the fingerprint of what made them.
    """
    shard = folder / shard_name(rows.doc_ids.tolist(), rows.stamps.tolist())
    file = io.BytesIO()
    np.save(file, vectors, allow_pickle=False)
    content = file.getvalue()
    write_file(shard.with_suffix(".npy"), content)
    write_file(shard.with_suffix(".arrow"), _columns(rows, f"{zlib.crc32(content):08x}", encoder))
    return shard.name


class _Seal(NamedTuple):
    """What the metadata of a shard's columns say."""

    vectors: str
    """Checksum of the file of vectors."""
    encoder: str
    rows: str
    """Checksum of the columns and of what stands above."""

    @classmethod
    def of(cls, rows: Rows, vectors: str, encoder: str) -> _Seal:
        """The seal of a shard."""
        content = json.dumps([*(column.tolist() for column in rows), vectors, encoder])
        return cls(vectors, encoder, f"{zlib.crc32(content.encode()):08x}")


def _columns(rows: Rows, vectors: str, encoder: str) -> bytes:
    names = ("doc_id", "stamp", "content")
    columns = [pa.array(column, pa.string()) for column in rows]
    table = pa.table(dict(zip(names, columns, strict=True)))
    table = table.replace_schema_metadata(_Seal.of(rows, vectors, encoder)._asdict())
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as file:
        file.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_rows(index: Path) -> tuple[Rows, int] | None:
    """Whose the vectors of a shard are, and their number of components; None for a
    damaged shard, which is set aside. The vectors themselves are not read: see `is_whole`.

    Raises `VragError` for a file that is there but cannot be opened: that says nothing
    about what is in it.
    """
    with _setting_aside(index):
        rows, _ = _read(index)
        count, width = _map(index.with_suffix(".npy")).shape
        if count != len(rows.doc_ids):
            raise ValueError(f"{count} vectors for {len(rows.doc_ids)} documents")
        return rows, int(width)
    return None


def is_whole(folder: Path, shard: str, space: VectorSpace) -> bool:
    """Whether the vectors of a shard are those that were written; damaged ones are set
    aside. Each version of a file is read once.

    Raises `VragError` for vectors of another encoder, for those that were written
    without being directions, and as `read_rows` does.
    """
    index = folder / f"{shard}.arrow"
    with _setting_aside(index):
        vectors = index.with_suffix(".npy")
        seal = _seal_of(index)
        _hold(vectors, seal)
        wrong = _wrong_lengths(vectors, version_of(vectors), space.normalized)
        if seal.encoder != space.fingerprint:
            raise VragError(
                f"{vectors}: the encoder with the fingerprint {seal.encoder[:12]} made these"
                f" vectors; expected {space.fingerprint[:12]}. Move the shard to the folder of its"
                " own encoder, then search again."
            )
        if wrong is not None:
            raise VragError(
                f"{vectors}: the embedding of {_read(index)[0].doc_ids[wrong.row]!r} has {wrong},"
                " and was written so. Remove this shard, then search again."
            )
        return True
    return False


@cache
def _wrong_lengths(path: Path, version: Version, normalized: bool) -> WrongLengths | None:
    return wrong_lengths(_map(path), normalized)


@contextmanager
def _setting_aside(index: Path) -> Iterator[None]:
    """Set aside a shard that turns out to be damaged."""
    try:
        yield
    except _DAMAGE as error:
        _set_aside(index, error)
    except OSError as error:
        raise VragError(
            f"{error.filename or index}: this shard of embeddings is there, but cannot be"
            f" opened ({error.strerror or error}). Nothing was changed; check its rights, the"
            " disk and the number of files that may be open, then search again."
        ) from error


def _read(index: Path) -> tuple[Rows, _Seal]:
    """Raises `ValueError` for other columns than were written."""
    # bytes first: an error of the disk is an OSError, and of what is in them a ValueError
    content = pa.BufferReader(index.read_bytes())
    try:
        with pa.ipc.open_file(content) as file:
            table = file.read_all()
        table.validate(full=True)  # damaged offsets would end the process
    except (OSError, MemoryError) as error:
        raise ValueError(str(error)) from error
    rows = Rows(*(table[name].to_numpy() for name in ("doc_id", "stamp", "content")))
    seal = _told(table.schema)
    if seal != _Seal.of(rows, seal.vectors, seal.encoder):
        raise ValueError("its documents are not those that were written: the checksum differs")
    return rows, seal


def _told(schema: pa.Schema) -> _Seal:
    if schema.metadata is None:
        raise ValueError("it has no checksums")
    return _Seal(*(schema.metadata[key.encode()].decode() for key in _Seal._fields))


def _seal_of(index: Path) -> _Seal:
    return _read_seal(index, version_of(index))


@cache
def _read_seal(index: Path, version: Version) -> _Seal:
    return _read(index)[1]


def _hold(vectors: Path, seal: _Seal) -> None:
    if file_crc32(vectors) != seal.vectors:
        raise ValueError("its vectors are not those that were written: the checksum differs")


def open_vectors(folder: Path, shard: str) -> np.ndarray:
    """A shard's vectors, float32, shape (rows, d), read where they are looked at; the
    file is open as long as the array lives.

    Raises `ValueError` where its checksum differs; a converted index has checksums of its own.
    """
    path = folder / f"{shard}.npy"
    index = path.with_suffix(".arrow")
    if index.is_file():
        _hold(path, _seal_of(index))
    return _map(path)


def _map(path: Path) -> np.ndarray:
    vectors: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    if vectors.dtype != np.float32 or vectors.ndim != 2:
        raise ValueError(f"{vectors.dtype} of shape {vectors.shape}, expected rows of float32")
    return vectors.view(np.ndarray)


def _set_aside(index: Path, error: Exception) -> None:
    moved = False
    vectors = index.with_suffix(".npy")
    for path in (index, vectors):
        try:
            path.replace(path.with_name(f"{path.name}.damaged"))
            moved = True
        except FileNotFoundError:
            continue  # never there, or another process was faster
        except OSError as refused:
            raise VragError(
                f"{vectors}: damaged shard ({error}), which cannot be set aside"
                f" ({refused.strerror}). Remove it, or make the folder writable, then search again."
            ) from error
    if moved:
        print(
            f"{vectors}: damaged shard ({error}), set aside as *.damaged; its documents are"
            " embedded again",
            flush=True,
        )
