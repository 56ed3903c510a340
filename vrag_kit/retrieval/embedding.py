"""Embedding a corpus: each document once, and nothing wrong is kept.

Documents are known again by their stamps, or, where those differ, by what they show: a
folder that was copied is read, and not embedded. An interrupted run goes on from its last
shard, and several processes share the work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.retrieval import keeping
from vrag_kit.retrieval.directions import check_vectors
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders import Encoder, Prepared
from vrag_kit.retrieval.keeping import Columns, Part, embed_missing, keep, storing
from vrag_kit.retrieval.manifests import documents_folder, embeddings_folder, write_manifest
from vrag_kit.retrieval.shards import VectorSpace
from vrag_kit.retrieval.units import Pace
from vrag_kit.types import Evidence

SHARD = 2048
"""Documents a shard: what an interruption can cost at most."""


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
    is full; finished shards are kept in every case, but damaged ones are set aside.
    """
    documents = documents if isinstance(documents, Collection) else list(documents)
    folder = _folder(encoder, documents, root)
    found = keep(_Documents(encoder), documents, folder, _pace(batch_size, workers))
    _tell(encoder.name, len(documents) - found.new, found.new)
    return Embeddings(folder, found.ids, found.places, found.dim)


def embed_part(
    encoder: Encoder,
    documents: Collection[Evidence],
    root: Path | str,
    part: Part,
    *,
    batch_size: int = 64,
    workers: int | None = None,
) -> None:
    """Embed what is not on disk yet of one part of the documents.

    Parts may overlap, be made at once, die and be repeated: a shard that is made twice
    is one shard. Raises as `embed_documents`.
    """
    folder = _folder(encoder, documents, root)
    mine = int(((np.arange(len(documents)) // SHARD) % part.of == part.number - 1).sum())
    if not mine:
        shards = -(-len(documents) // SHARD)
        print(
            f"embeddings of {encoder.name}{part}: nothing to do; {len(documents):,} documents are"
            f" cut into shards of {SHARD:,}, of which there are {shards:,}, one for each of the"
            f" first {shards:,} parts",
            flush=True,
        )
        return
    columns = columns_of(encoder, documents)
    pace = _pace(batch_size, workers)
    new = embed_missing(_Documents(encoder), documents, columns, folder, pace, part)
    _tell(f"{encoder.name}{part}", mine - new, new)


def columns_of(encoder: Encoder, documents: Collection[Evidence]) -> Columns:
    """What the vectors of documents are known by."""
    return keeping.columns_of(_Documents(encoder), documents)


def space_of(encoder: Encoder) -> VectorSpace:
    """That of the vectors of its documents."""
    return VectorSpace(encoder.documents.fingerprint, encoder.normalized)


def _pace(batch_size: int, workers: int | None) -> Pace:
    return Pace(shard=SHARD, batch=batch_size, workers=workers or cores())


def _folder(encoder: Encoder, documents: Collection[Evidence], root: Path | str) -> Path:
    """The folder of the vectors, with a manifest where it is the encoder's own."""
    if not documents:
        raise VragError(
            "the corpus is empty: there is nothing to embed. Check the annotations and the image"
            " folder."
        )
    folder = documents_folder(encoder, root)
    if folder == embeddings_folder(encoder, root) and not (folder / "manifest.json").exists():
        with storing(folder):
            write_manifest(folder, encoder)
    return folder


def _tell(what: str, there: int, new: int) -> None:
    print(f"embeddings of {what}: {there:,} from disk, {new:,} new", flush=True)


class _Documents:
    """Documents as an encoder is shown them."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.label = f"embedding with {encoder.name}"
        self.unit = "documents"
        self.space = space_of(encoder)

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
