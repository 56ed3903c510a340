"""Embedding a corpus: each document once, and nothing wrong is kept.

Documents are known again by their stamps, or, where those differ, by what they show: a
folder that was copied is read, and not embedded. An interrupted run goes on from its last
shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.retrieval.ahead import cut
from vrag_kit.retrieval.directions import check_vectors
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders import Encoder, Prepared
from vrag_kit.retrieval.kept import read_kept
from vrag_kit.retrieval.lookup import hashes
from vrag_kit.retrieval.manifests import documents_folder, embeddings_folder, write_manifest
from vrag_kit.retrieval.units import Pace, Source, Work
from vrag_kit.retrieval.vectors import Places
from vrag_kit.types import Evidence

SHARD = 2048
"""Documents a shard: what an interruption can cost at most."""

_TEXT = np.dtypes.StringDType()
Thing = TypeVar("Thing")


def embed_documents(
    encoder: Encoder,
    documents: Iterable[Evidence],
    root: Path | str,
    *,
    batch_size: int = 64,
    workers: int | None = None,
) -> Embeddings:
    """Embed what is not on disk yet, and return the vectors of all `documents`.

    Pictures are decoded by `workers` threads (default: one a core) ahead of the
    encoder. A document is embedded again when its stamp and its content change; one that
    changed while it was embedded is named, and embedded again next time. Several
    processes share the work. Of documents, ids and places are in memory. Raises
    `VragError` when there are no documents, a picture is damaged, a vector is NaN, zero
    or (for a normalized encoder) not of unit length, a file cannot be opened, or the disk
    is full; finished shards are kept in every case.
    """
    documents = documents if isinstance(documents, Collection) else list(documents)
    if not documents:
        raise VragError(
            "the corpus is empty: there is nothing to embed. Check the annotations and the image"
            " folder."
        )
    folder = documents_folder(encoder, root)
    pace = Pace(shard=SHARD, batch=batch_size, workers=workers or cores())
    found = keep(_Documents(encoder), documents, folder, pace)
    if found.new and folder == embeddings_folder(encoder, root):
        write_manifest(folder, encoder)
    print(
        f"embeddings of {encoder.name}: {len(documents) - found.new:,} from disk,"
        f" {found.new:,} new",
        flush=True,
    )
    _tell_changed(found.changed)
    return Embeddings(folder, found.ids, found.places, found.dim)


class _Documents:
    """Documents as an encoder is shown them."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.label = f"embedding with {encoder.name}"

    def doc_id(self, document: Evidence) -> str:
        return document.doc_id

    def stamp(self, document: Evidence) -> str:
        return self._encoder.shown.stamp(document)

    def content(self, document: Evidence) -> str:
        return self._encoder.shown.content(document, self._encoder.name)

    def prepare(self, document: Evidence) -> Prepared:
        return self._encoder.prepare(document)

    def encode(self, prepared: Sequence[Prepared], names: Sequence[str]) -> np.ndarray:
        vectors = self._encoder.encode_documents(prepared)
        check_vectors(vectors, names, self._encoder)
        return vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where the vectors of things are, and what it took."""

    ids: np.ndarray
    """Of numpy's `StringDType`, shape (n,)."""
    places: Places
    dim: int
    new: int
    """How many were encoded."""
    changed: Sequence[str]
    """Which ones changed meanwhile."""


def keep(source: Source[Thing], things: Collection[Thing], folder: Path, pace: Pace) -> Found:
    """Embed those things of which `folder` has no vector, and say where all of them are.

    Raises `VragError` as `embed_documents` does.
    """
    columns = _columns(source, things)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = read_kept(folder)
        missing = kept.find(columns.doc_ids, columns.stamps) < 0
        work = Work(source, folder, kept, pace)
        if missing.any():
            work.embed(compress(things, missing), int(missing.sum()))
            kept = read_kept(folder)
    except OSError as error:
        raise VragError(
            f"{folder}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error
    found = kept.find(columns.doc_ids, columns.stamps)
    if len(gone := np.flatnonzero(found < 0)):
        raise VragError(
            f"{len(gone):,} documents changed before they could be embedded, the first is"
            f" {columns.ids[gone[0]]!r}. Search again."
        )
    places = kept.places.of(found)
    return Found(ids=columns.ids, places=places, dim=kept.dim, new=work.new, changed=work.changed)


class _Columns(NamedTuple):
    """What things are known by; shape (n,) each."""

    ids: np.ndarray
    """Of numpy's `StringDType`."""
    doc_ids: np.ndarray
    """Hashes of them …"""
    stamps: np.ndarray
    """… and of what changes with the things."""


def _columns(source: Source[Thing], things: Iterable[Thing]) -> _Columns:
    blocks = []
    for block in cut(things, SHARD):
        ids = [source.doc_id(thing) for thing in block]
        stamps = hashes(source.stamp(thing) for thing in block)
        blocks.append(_Columns(np.array(ids, _TEXT), hashes(ids), stamps))
    return _Columns(*map(np.concatenate, zip(*blocks, strict=True)))


def _tell_changed(changed: Sequence[str]) -> None:
    if changed:
        print(
            f"{len(changed):,} documents changed while they were embedded, the first is"
            f" {changed[0]!r}; they are embedded again next time. Search again before you use"
            " these results.",
            flush=True,
        )
