"""Things and their vectors in a folder: which are missing, and where all of them are."""

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
from vrag_kit.names import Names
from vrag_kit.retrieval.ahead import cut
from vrag_kit.retrieval.kept import read_kept, read_whole
from vrag_kit.retrieval.lookup import hashes
from vrag_kit.retrieval.units import Pace, Source, Work
from vrag_kit.retrieval.vectors import Places

Thing = TypeVar("Thing")
_BLOCK = 4096


class Part(NamedTuple):
    """The `number`-th of `of` parts, from 1: of every `of` shards one."""

    number: int
    of: int

    def __str__(self) -> str:
        return f", part {self.number}/{self.of}" if self.of > 1 else ""


WHOLE = Part(1, 1)


class Columns(NamedTuple):
    """What things are known by."""

    ids: Names
    doc_ids: np.ndarray
    """Hashes of them, uint64, shape (n,) …"""
    stamps: np.ndarray
    """… and of what changes with the things."""

    def digest(self) -> str:
        """The same for the same things in the same order."""
        return hashlib.sha256(self.doc_ids.tobytes() + self.stamps.tobytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where the vectors of things are, and what it took."""

    ids: Names
    places: Places
    dim: int
    new: int
    """How many were encoded."""


def columns_of(source: Source[Thing], things: Collection[Thing]) -> Columns:
    """What things are known by."""
    doc_ids = np.empty(len(things), np.uint64)
    stamps = np.empty(len(things), np.uint64)

    def named() -> Iterator[str]:
        start = 0
        for block in cut(things, _BLOCK):
            here = slice(start, start := start + len(block))
            names = [source.doc_id(thing) for thing in block]
            doc_ids[here] = hashes(names)
            stamps[here] = hashes(source.stamp(thing) for thing in block)
            yield from names

    return Columns(Names(named()), doc_ids, stamps)


def keep(source: Source[Thing], things: Collection[Thing], folder: Path, pace: Pace) -> Found:
    """Embed those things of which `folder` has no vector, and say where all of them are.

    Raises `VragError` as `embed_documents` does.
    """
    columns = columns_of(source, things)
    new = embed_missing(source, things, columns, folder, pace)
    kept = read_kept(folder)
    found = kept.find(columns.doc_ids, columns.stamps)
    if len(gone := np.flatnonzero(found < 0)):
        raise VragError(
            f"{len(gone):,} {source.unit} changed before they could be embedded, the first is"
            f" {columns.ids.at(gone[:1])[0]!r}. Search again."
        )
    return Found(ids=columns.ids, places=kept.places.of(found), dim=kept.dim, new=new)


def embed_missing(
    source: Source[Thing],
    things: Iterable[Thing],
    columns: Columns,
    folder: Path,
    pace: Pace,
    part: Part = WHOLE,
) -> int:
    """Embed what `folder` lacks of a part of the things; returns how many were encoded.

    Those that changed meanwhile are named. Raises `VragError` as `embed_documents` does.
    """
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        shard = np.arange(len(columns.stamps)) // pace.shard
        mine = shard % part.of == part.number - 1
        kept = read_whole(folder, columns.doc_ids[mine], columns.stamps[mine], source.space)
        missing = mine & (kept.find(columns.doc_ids, columns.stamps) < 0)
        if not missing.any():
            return 0
        work = Work(source, folder, kept, pace)
        work.embed(compress(things, missing), int(missing.sum()))
    _tell_changed(work.changed, source.unit)
    return work.new


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turn an error of the disk into one that says what to do."""
    try:
        yield
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error


def _tell_changed(changed: Sequence[str], unit: str) -> None:
    if changed:
        print(
            f"{len(changed):,} {unit} changed while they were embedded, the first is"
            f" {changed[0]!r}; they are embedded again next time. Search again before you use"
            " these results.",
            flush=True,
        )
