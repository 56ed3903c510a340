"""What a folder of embeddings holds, as columns: found by document and stamp, or by
what the document shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vrag_kit.retrieval.lookup import Lookup, hashes
from vrag_kit.retrieval.shards import VectorSpace, is_whole, list_shards, read_rows
from vrag_kit.retrieval.vectors import Places


@dataclass(frozen=True)
class Kept:
    """All vectors of a folder; 40 bytes for each, whatever its name."""

    places: Places
    dim: int
    """Number of components of a vector; 0 without any."""
    doc_ids: np.ndarray
    """Hashes of them, as `hashes` makes them; uint64, shape (n,)."""
    stamps: np.ndarray
    contents: np.ndarray
    """Hashes of what they show, uint64, shape (n, 2); 0 where it is not known."""

    def find(self, doc_ids: np.ndarray, stamps: np.ndarray) -> np.ndarray:
        """The position of the vector of each document, given by hashes; −1 for none."""
        return self._by_stamp.find(doc_ids, stamps)

    def find_content(self, content: str) -> int:
        """The position of a vector of that content; −1 for none."""
        return int(self._by_content.find(*_numbers([content]).T)[0])

    def shard_of(self, position: int) -> str:
        """The shard that holds the vector at a position."""
        number = int(self.places.shard[position])
        return self.places.shards[number]

    @cached_property
    def _by_stamp(self) -> Lookup:
        return Lookup(self.doc_ids, self.stamps)

    @cached_property
    def _by_content(self) -> Lookup:
        known = np.flatnonzero(self.contents.any(axis=1))
        first, second = self.contents[known].T
        return Lookup(first, second, known)


class _Column(NamedTuple):
    """Hashes of a shard's rows, as in `Kept`."""

    doc_ids: np.ndarray
    stamps: np.ndarray
    contents: np.ndarray


def read_kept(folder: Path) -> Kept:
    """What a folder holds; damaged shards are set aside.

    Raises `VragError` for a shard that is there but cannot be opened.
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
        known.append(_Column(hashes(rows.doc_ids), hashes(rows.stamps), _numbers(rows.contents)))
    counts = [len(each.doc_ids) for each in known[1:]]
    row = [np.arange(len(each.doc_ids), dtype=np.int32) for each in known]
    shard = np.repeat(np.arange(len(shards), dtype=np.int32), counts)
    places = Places(tuple(shards), shard, np.concatenate(row))
    return Kept(places, dim, *map(np.concatenate, zip(*known, strict=True)))


def read_whole(folder: Path, doc_ids: np.ndarray, stamps: np.ndarray, space: VectorSpace) -> Kept:
    """What a folder holds, where the vectors of some documents are those that were written:
    shards of others are not read. Documents are given by hashes, as to `Kept.find`.

    Raises `VragError` as `is_whole` does.
    """
    while True:
        kept = read_kept(folder)
        found = kept.find(doc_ids, stamps)
        used = np.unique(kept.places.shard[found[found >= 0]])
        whole = [is_whole(folder, kept.places.shards[shard], space) for shard in used]
        if all(whole):
            return kept


def _numbers(contents: Iterable[str]) -> np.ndarray:
    """Hashes of 32 hexadecimal digits as numbers, uint64, shape (n, 2); 0 for ""."""
    digits = "".join(content or "0" * 32 for content in contents)
    return np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64).reshape(-1, 2)
