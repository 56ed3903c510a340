"""Index of the vectors stored in a folder, by document and stamp, or by content."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vrag_kit.retrieval.lookup import PairIndex, hash_texts
from vrag_kit.retrieval.shards import VectorSpace, is_intact, list_shards, read_rows
from vrag_kit.retrieval.vectors import VectorLocations


@dataclass(frozen=True)
class StoredVectors:
    """Index of all vectors of a folder; 40 bytes for each, whatever its id."""

    places: VectorLocations
    dim: int
    """Number of components of a vector; 0 without any."""
    doc_ids: np.ndarray
    """Hashes of the document ids, as `hash_texts` makes them; uint64, shape (n,)."""
    stamps: np.ndarray
    contents: np.ndarray
    """Hashes of the encoded content, uint64, shape (n, 2); 0 where unknown."""

    def find(self, doc_ids: np.ndarray, stamps: np.ndarray) -> np.ndarray:
        """Returns the vector position of each document, given by hashes; −1 for none."""
        return self._by_stamp.find(doc_ids, stamps)

    def find_content(self, content: str) -> int:
        """Returns the position of a vector with this content hash; −1 for none."""
        return int(self._by_content.find(*_numbers([content]).T)[0])

    def shard_of(self, position: int) -> str:
        """Returns the shard that holds the vector at a position."""
        number = int(self.places.shard[position])
        return self.places.shards[number]

    @cached_property
    def _by_stamp(self) -> PairIndex:
        return PairIndex(self.doc_ids, self.stamps)

    @cached_property
    def _by_content(self) -> PairIndex:
        known = np.flatnonzero(self.contents.any(axis=1))
        first, second = self.contents[known].T
        return PairIndex(first, second, known)


class _Column(NamedTuple):
    """Hashes of a shard's rows, as in `StoredVectors`."""

    doc_ids: np.ndarray
    stamps: np.ndarray
    contents: np.ndarray


def read_stored_vectors(folder: Path) -> StoredVectors:
    """Read the index of a folder's vectors; damaged shards are set aside.

    Raises `VragError` for a shard that exists but cannot be opened.
    """
    shards: list[str] = []
    none = np.empty(0, np.uint64)
    known = [_Column(none, none, none.reshape(0, 2))]
    dim = 0
    for index in list_shards(folder):
        found = read_rows(index)
        if found is None:
            continue
        rows, dim = found
        shards.append(index.stem)
        known.append(
            _Column(hash_texts(rows.doc_ids), hash_texts(rows.stamps), _numbers(rows.contents))
        )
    counts = [len(each.doc_ids) for each in known[1:]]
    row = [np.arange(len(each.doc_ids), dtype=np.int32) for each in known]
    shard = np.repeat(np.arange(len(shards), dtype=np.int32), counts)
    places = VectorLocations(tuple(shards), shard, np.concatenate(row))
    return StoredVectors(places, dim, *map(np.concatenate, zip(*known, strict=True)))


def read_verified_vectors(
    folder: Path, doc_ids: np.ndarray, stamps: np.ndarray, space: VectorSpace
) -> StoredVectors:
    """Read the index of a folder's vectors, and verify those of some documents by checksum. Other
    shards are not verified. Documents are given by hashes, as to `StoredVectors.find`.

    Raises `VragError` as `is_intact` does.
    """
    while True:
        kept = read_stored_vectors(folder)
        found = kept.find(doc_ids, stamps)
        used = np.unique(kept.places.shard[found[found >= 0]])
        whole = [is_intact(folder, kept.places.shards[shard], space) for shard in used]
        if all(whole):
            return kept


def _numbers(contents: Iterable[str]) -> np.ndarray:
    """Hashes of 32 hexadecimal digits as numbers, uint64, shape (n, 2); 0 for ""."""
    digits = "".join(content or "0" * 32 for content in contents)
    return np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64).reshape(-1, 2)
