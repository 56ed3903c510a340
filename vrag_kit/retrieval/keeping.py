"""Embeds the items whose vectors a folder lacks, and locates the vectors of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.names import StringIndex
from vrag_kit.retrieval.kept import read_stored_vectors, read_verified_vectors
from vrag_kit.retrieval.lookup import hash_texts
from vrag_kit.retrieval.prefetch import batched
from vrag_kit.retrieval.units import BatchSizes, EmbeddingJob, EmbeddingSource
from vrag_kit.retrieval.vectors import VectorLocations

Thing = TypeVar("Thing")
_BLOCK = 4096


class ShardPart(NamedTuple):
    """Part `number` of `of` parts, counted from 1: one shard out of every `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f", part {self.number}/{self.of}" if self.of > 1 else ""


WHOLE = ShardPart(1, 1)


class ItemKeys(NamedTuple):
    """Ids of items, and hashes of their ids and stamps."""

    ids: StringIndex
    doc_ids: np.ndarray
    """Hashes of the ids, uint64, shape (n,)."""
    stamps: np.ndarray
    """Hashes of the stamps, which change with the items, uint64, shape (n,)."""

    def digest(self) -> str:
        """Returns a hash that is the same for the same items in the same order."""
        return hashlib.sha256(self.doc_ids.tobytes() + self.stamps.tobytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheResult:
    """Locations of the items' vectors, and the number of newly encoded items."""

    ids: StringIndex
    places: VectorLocations
    dim: int
    new: int
    """Number of items that were encoded."""


def item_keys(source: EmbeddingSource[Thing], things: Collection[Thing]) -> ItemKeys:
    """Returns the ids of items, and hashes of their ids and stamps."""
    doc_ids = np.empty(len(things), np.uint64)
    stamps = np.empty(len(things), np.uint64)

    def named() -> Iterator[str]:
        start = 0
        for block in batched(things, _BLOCK):
            here = slice(start, start := start + len(block))
            names = [source.doc_id(thing) for thing in block]
            doc_ids[here] = hash_texts(names)
            stamps[here] = hash_texts(source.stamp(thing) for thing in block)
            yield from names

    return ItemKeys(StringIndex(named()), doc_ids, stamps)


def embed_all(
    source: EmbeddingSource[Thing], things: Collection[Thing], folder: Path, pace: BatchSizes
) -> CacheResult:
    """Embed the items without a vector in `folder`; return the locations of all vectors.

    Raises `VragError` as `embed_documents` does.
    """
    columns = item_keys(source, things)
    new = embed_missing(source, things, columns, folder, pace)
    kept = read_stored_vectors(folder)
    found = kept.find(columns.doc_ids, columns.stamps)
    if len(gone := np.flatnonzero(found < 0)):
        raise VragError(
            f"{len(gone):,} {source.unit} changed before they could be embedded, the first is"
            f" {columns.ids.take(gone[:1])[0]!r}. Search again."
        )
    return CacheResult(ids=columns.ids, places=kept.places.take(found), dim=kept.dim, new=new)


def embed_missing(
    source: EmbeddingSource[Thing],
    things: Iterable[Thing],
    columns: ItemKeys,
    folder: Path,
    pace: BatchSizes,
    part: ShardPart = WHOLE,
) -> int:
    """Embed the items of a part that `folder` lacks; return how many were encoded.

    Items that changed meanwhile are reported. Raises `VragError` as `embed_documents` does.
    """
    with catch_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        shard = np.arange(len(columns.stamps)) // pace.shard
        mine = shard % part.of == part.number - 1
        kept = read_verified_vectors(
            folder, columns.doc_ids[mine], columns.stamps[mine], source.space
        )
        missing = mine & (kept.find(columns.doc_ids, columns.stamps) < 0)
        if not missing.any():
            return 0
        work = EmbeddingJob(source, folder, kept, pace)
        work.embed(compress(things, missing), int(missing.sum()))
    _tell_changed(work.changed, source.unit)
    return work.new


@contextmanager
def catch_disk_errors(folder: Path) -> Iterator[None]:
    """Convert an `OSError` into a `VragError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error


def _tell_changed(changed: Sequence[str], unit: str) -> None:
    if changed:
        logger.info(
            f"{len(changed):,} {unit} changed while they were embedded, the first is"
            f" {changed[0]!r}; they are embedded again next time. Search again before you use"
            " these results.",
        )
