"""Embeds missing items in units, one shard each, that may be made twice.

Several processes may work at the same time, also on machines that share the folder. A unit locked
by another process is left to it, and made in the end if that process died.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from filelock import FileLock, Timeout

from vrag_kit.log import logger
from vrag_kit.progress import track
from vrag_kit.retrieval.encoders.base import Prepared
from vrag_kit.retrieval.kept import StoredVectors
from vrag_kit.retrieval.prefetch import batched, prefetch
from vrag_kit.retrieval.shards import (
    ShardRows,
    VectorSpace,
    has_shard,
    is_intact,
    shard_name,
    write_shard,
)
from vrag_kit.retrieval.vectors import Vectors

Thing = TypeVar("Thing")
_Contra = TypeVar("_Contra", contravariant=True)


class EmbeddingSource(Protocol[_Contra]):
    """The interface of items to embed, and how to encode them."""

    @property
    def label(self) -> str:
        """Label of the progress bar."""

    @property
    def unit(self) -> str:
        """Plural name of the items, such as "documents"."""

    @property
    def space(self) -> VectorSpace:
        """Vector space of the encoded items."""

    def doc_id(self, thing: _Contra) -> str:
        """Returns the id by which the item's vector is found."""

    def stamp(self, thing: _Contra) -> str:
        """Returns a stamp that changes whenever the item's vector may change."""

    def content(self, thing: _Contra) -> str:
        """Returns a hash of the encoded content, 32 hexadecimal digits; reads the content."""

    def prepare(self, thing: _Contra) -> Prepared:
        """Preprocesses an item for `encode`; runs in threads."""

    def encode(self, prepared: Sequence[Prepared], names: Sequence[str]) -> np.ndarray:
        """Returns vectors, float32, shape (n, d); raises `VragError` naming an invalid one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """Shard size, batch size, and number of threads that prepare items."""

    shard: int
    batch: int
    workers: int


@dataclass(slots=True)
class _Unit(Generic[Thing]):
    """A shard to be made; stamps are taken before anything is read."""

    things: Sequence[Thing]
    doc_ids: list[str]
    stamps: list[str]
    shard: str
    lock: FileLock
    contents: list[str] = field(default_factory=list)
    vectors: list[np.ndarray] = field(default_factory=list)

    def let_go(self) -> None:
        """Releases the lock; a waiting process finds the shard, or makes it."""
        Path(self.lock.lock_file).unlink(missing_ok=True)
        self.lock.release(force=True)


class _Ready(NamedTuple):
    """A thing before it is encoded."""

    doc_id: str
    content: str
    known: int
    """The position of a vector of the same content; −1 for none."""
    prepared: Prepared


class EmbeddingJob(Generic[Thing]):
    """Embeds things into shards of a folder."""

    def __init__(
        self, source: EmbeddingSource[Thing], folder: Path, kept: StoredVectors, pace: BatchSizes
    ) -> None:
        """`kept` indexes the folder's vectors; one with the same content is reused."""
        self._source = source
        self._folder = folder
        self._kept = kept
        self._vectors = Vectors(folder, kept.places, kept.dim)
        self._pace = pace
        self._one_at_a_time = threading.Lock()
        self.new = 0
        """Number of items that were encoded."""
        self.changed: list[str] = []
        """Items that changed meanwhile: their vectors may be of either version."""

    def embed(self, things: Iterable[Thing], total: int) -> None:
        """Makes every unit a shard, or waits until another process has made it."""
        later: list[_Unit[Thing]] = []
        units = (self._unit(each) for each in batched(things, self._pace.shard))
        self._make((unit for unit in units if self._is_ours(unit, later)), total)
        for unit in later:
            logger.info(f"waiting: another process is embedding in {self._folder}")
            unit.lock.acquire()
            if self._is_ours(unit, later):
                self._make([unit], len(unit.things))

    def _unit(self, things: Sequence[Thing]) -> _Unit[Thing]:
        doc_ids = [self._source.doc_id(thing) for thing in things]
        stamps = [self._source.stamp(thing) for thing in things]
        shard = shard_name(doc_ids, stamps)
        lock = FileLock(self._folder / f".{shard}.lock")
        return _Unit(things, doc_ids, stamps, shard, lock)

    def _is_ours(self, unit: _Unit[Thing], later: list[_Unit[Thing]]) -> bool:
        """Whether to make a unit here and now; if so, its lock is held."""
        try:
            unit.lock.acquire(timeout=0)
        except Timeout:
            later.append(unit)
            return False
        if has_shard(self._folder, unit.shard):  # another process was faster
            unit.let_go()
            return False
        return True

    def _make(self, units: Iterable[_Unit[Thing]], total: int) -> None:
        """Embeds the items of locked units, and releases the units."""
        begun: deque[_Unit[Thing]] = deque()
        batches = prefetch(self._ready, self._batches(units, begun), self._pace.workers)
        label = self._source.label
        try:
            for _, ready in track(
                batches, label, total, self._source.unit, size=lambda each: len(each[1])
            ):
                unit = begun[0]
                unit.vectors.append(self._encoded(ready))
                unit.contents += [each.content for each in ready]
                if len(unit.contents) == len(unit.things):
                    self._write(unit)
                    begun.popleft().let_go()
        finally:
            for unit in begun:
                unit.let_go()

    def _batches(
        self, units: Iterable[_Unit[Thing]], begun: deque[_Unit[Thing]]
    ) -> Iterator[list[Thing]]:
        for unit in units:
            begun.append(unit)
            yield from batched(unit.things, self._pace.batch)

    def _ready(self, thing: Thing) -> _Ready:
        content = self._source.content(thing)
        known = self._known(content)
        prepared = self._source.prepare(thing) if known < 0 else None
        return _Ready(self._source.doc_id(thing), content, known, prepared)

    def _known(self, content: str) -> int:
        """Returns the position of an intact vector with the same content; −1 for none."""
        known = self._kept.find_content(content)
        if known < 0:
            return -1
        shard = self._kept.shard_of(known)
        with self._one_at_a_time:
            return known if is_intact(self._folder, shard, self._source.space) else -1

    def _encoded(self, ready: Sequence[_Ready]) -> np.ndarray:
        """Returns the vectors of a batch, float32, shape (n, d). Vectors of content that was
        embedded before are reused.
        """
        fresh = [each for each in ready if each.known < 0]
        self.new += len(fresh)
        old = self._vectors.rows(np.array([each.known for each in ready if each.known >= 0], int))
        if not fresh:
            return old
        names = [each.doc_id for each in fresh]
        made = self._source.encode([each.prepared for each in fresh], names)
        vectors = np.empty((len(ready), made.shape[1]), np.float32)
        is_fresh = np.array([each.known < 0 for each in ready])
        vectors[is_fresh] = made
        if len(old):
            vectors[~is_fresh] = old
        return vectors

    def _write(self, unit: _Unit[Thing]) -> None:
        """Keep a unit; what has another stamp than when it was to be read keeps its old
        one, and no content.
        """
        now = [self._source.stamp(thing) for thing in unit.things]
        for place, doc_id in enumerate(unit.doc_ids):
            if now[place] != unit.stamps[place]:
                unit.contents[place] = ""
                self.changed.append(doc_id)
        rows = ShardRows.from_lists(unit.doc_ids, unit.stamps, unit.contents)
        vectors = np.concatenate(unit.vectors)
        write_shard(self._folder, rows, vectors, self._source.space.fingerprint)
