"""Shards: the files that hold vectors, and reading them.

    <root>/<encoder>-<fingerprint>/
        manifest.json          the encoder, and versions of libraries at its first vectors
        shard-<hash>.npy       vectors, float32, shape (rows, d)
        shard-<hash>.json.gz   id and version of each row, and the checksum of the vectors;
                               written last, it completes the shard
        runs/                  finished searches (`dense`)

Encoders that differ only on the query side share a folder of document vectors. A shard is named by
a hash of its ids and versions: one that is written twice, even concurrently, is one shard. Gzip's
checksum protects the index. A damaged shard is removed, and its documents are embedded again.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import project_path, write_file
from vrag_kit.log import logger
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.types import Json

INDEX = ".json.gz"
_LIBRARIES = ("open_clip_torch", "sentence-transformers", "torch", "torchvision", "transformers")
"""The libraries that preprocess and encode."""
_OPEN = 16
"""Shards held open at most: there may be more than a process may hold open."""


def embeddings_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder below `root` of everything that this encoder alone has made."""
    return project_path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"


def documents_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder of the encoder's document vectors."""
    name, fingerprint = encoder.document_key
    return project_path(root) / f"{name}-{fingerprint[:12]}"


def write_manifest(folder: Path, encoder: Encoder) -> None:
    """Writes the manifest of `folder`, unless it exists. A change of the libraries' versions is
    logged once; vectors are reused all the same.
    """
    path = folder / "manifest.json"
    versions = {library: version(library) for library in _LIBRARIES}
    before = json.loads(path.read_bytes())["versions"] if path.exists() else {}
    if before == versions:
        return
    if before:
        changed = [f"{each} {before.get(each)} → {versions[each]}" for each in versions]
        logger.warning(f"{folder}: reuses vectors of other libraries: {', '.join(changed)}.")
    manifest = {
        "encoder": encoder.name,
        "fingerprint": encoder.fingerprint,
        "normalized": encoder.normalized,
        "versions": versions,
    }
    write_file(path, json.dumps(manifest, indent=2, ensure_ascii=False))


def pack(content: object) -> bytes:
    """Returns `content` as gzipped JSON, the same bytes each time."""
    return zlib.compress(json.dumps(content).encode(), wbits=31)


def unpack(content: bytes) -> Any:
    """Returns what was packed. Raises `ValueError` or `zlib.error` for changed bytes."""
    return json.loads(zlib.decompress(content, wbits=31))


def list_shards(folder: Path) -> list[Path]:
    """Returns the paths of a folder's shards, without suffixes, sorted by name."""
    return sorted(path.with_suffix("").with_suffix("") for path in folder.glob(f"shard-*{INDEX}"))


def write_shard(
    folder: Path, doc_ids: Sequence[str], versions: Sequence[str], vectors: np.ndarray
) -> Path:
    """Writes vectors, float32, shape (n, d), as a shard of `folder`; returns its path without a
    suffix. `versions` are `encoder.modalities.stamp(document)`. Raises `OSError`.
    """
    key = json.dumps([list(doc_ids), list(versions)])
    shard = folder / f"shard-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    file = io.BytesIO()
    np.save(file, vectors, allow_pickle=False)
    index = {
        "doc_ids": list(doc_ids),
        "versions": list(versions),
        "dim": vectors.shape[1],
        "crc32": zlib.crc32(file.getbuffer()),
    }
    write_file(shard.with_suffix(".npy"), file.getvalue())
    write_file(shard.with_suffix(INDEX), pack(index))
    return shard


def read_index(shard: Path) -> Json | None:
    """Returns the index of a shard: doc_ids, versions (which change whenever the encoded content
    may have), dim (components of a vector) and crc32 of the file of vectors. They are verified once
    for each version of the files.

    None for a damaged shard, which is removed. Raises `OSError` for a file that cannot be opened.
    """
    try:
        _verify(shard, _file_versions(shard))
        return dict(unpack(shard.with_suffix(INDEX).read_bytes()))
    except (ValueError, zlib.error, FileNotFoundError) as error:
        logger.info(f"{shard}.npy: damaged shard ({error}), removed to embed it again")
        for suffix in (INDEX, ".npy"):
            shard.with_suffix(suffix).unlink(missing_ok=True)
        return None


def open_vectors(shard: Path) -> np.ndarray:
    """Returns a shard's vectors as a memory map, float32, shape (rows, d). The file is open as long
    as the array lives. Raises `ValueError` where the checksum differs.
    """
    _verify(shard, _file_versions(shard))
    vectors: np.ndarray = np.load(shard.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
    return vectors.view(np.ndarray)


def _file_versions(shard: Path) -> tuple[tuple[int, int, int], ...]:
    """Size, modification time and inode of both files, the same until one is written."""
    stats = (shard.with_suffix(suffix).stat() for suffix in (".npy", INDEX))
    return tuple((stat.st_size, stat.st_mtime_ns, stat.st_ino) for stat in stats)


@cache
def _verify(shard: Path, file_versions: object) -> None:
    """Raise `ValueError` for vectors that do not have the checksum of their index."""
    found = 0
    with shard.with_suffix(".npy").open("rb") as file:  # a bad sector of a map would be a signal
        while block := file.read(1 << 22):
            found = zlib.crc32(block, found)
    if found != unpack(shard.with_suffix(INDEX).read_bytes())["crc32"]:
        raise ValueError("its vectors are not those that were written: the checksum differs")


class Embeddings:
    """Vectors of a corpus, read on demand; only ids and the rows of vectors are in memory."""

    def __init__(self, ids: pd.Index, rows: np.ndarray, shards: Sequence[Path]) -> None:
        """`ids` are in corpus order, `rows`, int64, shape (n,), those of their vectors. Rows are
        counted through all `shards`, paths without suffixes. Raises `VragError` for a file that
        cannot be read.
        """
        self.ids = ids
        self._rows = rows
        self._shards = shards
        self._open = lru_cache(_OPEN)(self._open_shard)
        shapes = [self._open_shard(number).shape for number in range(len(shards))]
        self.dim = shapes[-1][1]
        self._starts = np.cumsum([0, *(rows for rows, _ in shapes)])

    def __len__(self) -> int:
        return len(self.ids)

    def positions(self, doc_ids: Sequence[str]) -> np.ndarray:
        """Returns the position of each document in the corpus, int64, shape (n,).

        Raises `VragError` for a document that was not embedded.
        """
        found = self.ids.get_indexer(pd.Index(doc_ids, dtype=object))
        if len(missing := np.flatnonzero(found < 0)):
            raise VragError(f"document {doc_ids[missing[0]]!r} was not embedded.")
        return found

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Returns the vectors at some positions, float32, shape (n, d). Consecutive rows of one
        shard are returned as they are on disk. Raises `VragError` for a file that cannot be read.
        """
        rows = self._rows[positions]
        shard = np.searchsorted(self._starts, rows, side="right") - 1
        rows -= self._starts[shard]
        if len(shard) and (shard == shard[0]).all():
            return self._open(int(shard[0]))[_as_slice(rows)]
        found = np.empty((len(rows), self.dim), np.float32)
        order = np.argsort(shard, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(shard[order])) + 1):
            if len(part):
                found[_as_slice(part)] = self._open(int(shard[part[0]]))[_as_slice(rows[part])]
        return found

    def in_disk_order(self, positions: np.ndarray) -> np.ndarray:
        """Returns the positions in the order of their vectors on disk."""
        return positions[np.argsort(self._rows[positions])]

    def _open_shard(self, number: int) -> np.ndarray:
        shard = self._shards[number]
        try:
            return open_vectors(shard)
        except (OSError, ValueError, zlib.error) as error:
            raise VragError(f"{shard}.npy: cannot be read ({error}). Search again.") from error


def _as_slice(numbers: np.ndarray) -> slice | np.ndarray:
    """The same as a slice, where the numbers are consecutive."""
    first, last = int(numbers[0]), int(numbers[0]) + len(numbers)
    return slice(first, last) if (numbers == np.arange(first, last)).all() else numbers
