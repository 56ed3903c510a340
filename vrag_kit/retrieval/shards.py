"""A shard of embeddings on disk: vectors, and columns that identify their documents.

    <shard>.npy      float32, shape (rows, d)
    <shard>.arrow    columns doc_id, stamp and content, a row for each vector, and the
                     checksums of both files; written last, it completes the shard

A shard is named by a hash of its documents and their stamps: one that is made twice, even
concurrently, is one complete shard. A damaged one, or one without checksums, is set aside as
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
from vrag_kit.log import logger
from vrag_kit.retrieval.checksums import Version, file_crc32, file_version
from vrag_kit.retrieval.encoders.base import InvalidRows, find_invalid_rows

DAMAGED = "shard-*.damaged"
"""Pattern of the files of damaged shards that were set aside."""
_DAMAGE = ValueError, KeyError, TypeError, EOFError, OverflowError, TokenError, FileNotFoundError


class VectorSpace(NamedTuple):
    """Properties that the vectors of a folder share."""

    fingerprint: str
    """Fingerprint of the encoder that made them."""
    normalized: bool


class ShardRows(NamedTuple):
    """Columns that identify the vectors of a shard; each is an array of texts."""

    doc_ids: np.ndarray
    stamps: np.ndarray
    """Stamps, which change whenever the encoded content may have changed."""
    contents: np.ndarray
    """Hash of the encoded content; "" where unknown."""

    @classmethod
    def from_lists(
        cls, doc_ids: Sequence[str], stamps: Sequence[str], contents: Sequence[str]
    ) -> ShardRows:
        """Builds the columns from lists."""
        return cls(*(np.array(list(each), object) for each in (doc_ids, stamps, contents)))


def shard_name(doc_ids: Sequence[str], stamps: Sequence[str]) -> str:
    """Returns the name of the shard of these documents."""
    told = json.dumps([list(doc_ids), list(stamps)])
    return f"shard-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def has_shard(folder: Path, shard: str) -> bool:
    """Returns whether a shard exists."""
    return (folder / f"{shard}.arrow").is_file()


def list_shards(folder: Path) -> list[Path]:
    """Returns the index file of each shard, sorted by name."""
    return sorted(folder.glob("shard-*.arrow"))


def write_shard(folder: Path, rows: ShardRows, vectors: np.ndarray, encoder: str) -> str:
    """Writes vectors, shape (n, d), with their rows as a shard; returns its name. `encoder` is the
    fingerprint of the encoder that made the vectors.
    """
    shard = folder / shard_name(rows.doc_ids.tolist(), rows.stamps.tolist())
    file = io.BytesIO()
    np.save(file, vectors, allow_pickle=False)
    content = file.getvalue()
    write_file(shard.with_suffix(".npy"), content)
    write_file(shard.with_suffix(".arrow"), _columns(rows, f"{zlib.crc32(content):08x}", encoder))
    return shard.name


class _Seal(NamedTuple):
    """Metadata of a shard's columns."""

    vectors: str
    """Checksum of the file of vectors."""
    encoder: str
    rows: str
    """Checksum of the columns and of the two fields above."""

    @classmethod
    def of(cls, rows: ShardRows, vectors: str, encoder: str) -> _Seal:
        """Returns the seal of a shard."""
        content = json.dumps([*(column.tolist() for column in rows), vectors, encoder])
        return cls(vectors, encoder, f"{zlib.crc32(content.encode()):08x}")


def _columns(rows: ShardRows, vectors: str, encoder: str) -> bytes:
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


def read_rows(index: Path) -> tuple[ShardRows, int] | None:
    """Returns a shard's rows and number of components; None for a damaged shard, which is set
    aside. The vectors are not read: see `is_intact`.

    Raises `VragError` for a file that exists but cannot be opened: its content may be intact.
    """
    with _setting_aside(index):
        rows, _ = _read(index)
        count, width = _map(index.with_suffix(".npy")).shape
        if count != len(rows.doc_ids):
            raise ValueError(f"{count} vectors for {len(rows.doc_ids)} documents")
        return rows, int(width)
    return None


def is_intact(folder: Path, shard: str, space: VectorSpace) -> bool:
    """Returns whether a shard's vectors match their checksum; damaged ones are set aside. Each
    version of a file is read once.

    Raises `VragError` for vectors of another encoder, for those that were invalid when written, and
    as `read_rows` does.
    """
    index = folder / f"{shard}.arrow"
    with _setting_aside(index):
        vectors = index.with_suffix(".npy")
        seal = _seal_of(index)
        _hold(vectors, seal)
        wrong = _wrong_lengths(vectors, file_version(vectors), space.normalized)
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
def _wrong_lengths(path: Path, version: Version, normalized: bool) -> InvalidRows | None:
    return find_invalid_rows(_map(path), normalized)


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


def _read(index: Path) -> tuple[ShardRows, _Seal]:
    """Raises `ValueError` for other columns than were written."""
    # bytes first: an error of the disk is an OSError, and of what is in them a ValueError
    content = pa.BufferReader(index.read_bytes())
    try:
        with pa.ipc.open_file(content) as file:
            table = file.read_all()
        table.validate(full=True)  # damaged offsets would end the process
    except (OSError, MemoryError) as error:
        raise ValueError(str(error)) from error
    rows = ShardRows(*(table[name].to_numpy() for name in ("doc_id", "stamp", "content")))
    seal = _seal_of_schema(table.schema)
    if seal != _Seal.of(rows, seal.vectors, seal.encoder):
        raise ValueError("its documents are not those that were written: the checksum differs")
    return rows, seal


def _seal_of_schema(schema: pa.Schema) -> _Seal:
    if schema.metadata is None:
        raise ValueError("it has no checksums")
    return _Seal(*(schema.metadata[key.encode()].decode() for key in _Seal._fields))


def _seal_of(index: Path) -> _Seal:
    return _read_seal(index, file_version(index))


@cache
def _read_seal(index: Path, version: Version) -> _Seal:
    return _read(index)[1]


def _hold(vectors: Path, seal: _Seal) -> None:
    if file_crc32(vectors) != seal.vectors:
        raise ValueError("its vectors are not those that were written: the checksum differs")


def open_vectors(folder: Path, shard: str) -> np.ndarray:
    """Returns a shard's vectors as a memory map, float32, shape (rows, d). The file is open as long
    as the array lives.

    Raises `ValueError` where its checksum differs; a converted index has its own checksums.
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
        logger.info(
            f"{vectors}: damaged shard ({error}), set aside as *.damaged; its documents are"
            " embedded again",
        )
