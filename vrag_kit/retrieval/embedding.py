"""Embeds a corpus: each document once, storing only valid vectors.

Documents are recognised by their stamps or, where those differ, by a hash of their content: a
copied folder is not embedded again. An interrupted run resumes at its last shard, and several
processes share the work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from vrag_kit.cores import available_cores
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.retrieval import keeping
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders.base import Encoder, Prepared, validate_embeddings
from vrag_kit.retrieval.keeping import (
    ItemKeys,
    ShardPart,
    catch_disk_errors,
    embed_all,
    embed_missing,
)
from vrag_kit.retrieval.manifests import documents_folder, embeddings_folder, write_manifest
from vrag_kit.retrieval.shards import VectorSpace
from vrag_kit.retrieval.units import BatchSizes
from vrag_kit.types import Document

SHARD = 2048
"""Documents per shard, which is the most that an interruption can lose."""


def embed_documents(
    encoder: Encoder,
    documents: Iterable[Document],
    root: Path | str,
    *,
    batch_size: int = 64,
    workers: int | None = None,
) -> Embeddings:
    """Embed the documents that are not on disk yet; return the vectors of all `documents`.

    Images are decoded by `workers` threads (default: one per core) ahead of the encoder. A document
    is embedded again when its stamp and its content change; one that changes during embedding is
    reported, and embedded again next time. Several processes share the work. Only ids and vector
    locations are in memory. Raises `VragError` when there are no documents, an image is damaged, a
    vector is NaN, zero or (for a normalized encoder) not of unit length, a file cannot be opened,
    or the disk is full; finished shards are kept in every case, but damaged ones are set aside.
    """
    documents = documents if isinstance(documents, Collection) else list(documents)
    folder = _folder(encoder, documents, root)
    found = embed_all(_Documents(encoder), documents, folder, _pace(batch_size, workers))
    _tell(encoder.name, len(documents) - found.new, found.new)
    return Embeddings(folder, found.ids, found.places, found.dim)


def embed_part(
    encoder: Encoder,
    documents: Collection[Document],
    root: Path | str,
    part: ShardPart,
    *,
    batch_size: int = 64,
    workers: int | None = None,
) -> None:
    """Embed the documents of one part that are not on disk yet.

    Parts may overlap, run concurrently, fail and be repeated: a shard that is made twice is one
    shard. Raises as `embed_documents` does.
    """
    folder = _folder(encoder, documents, root)
    mine = int(((np.arange(len(documents)) // SHARD) % part.of == part.number - 1).sum())
    if not mine:
        shards = -(-len(documents) // SHARD)
        logger.info(
            f"embeddings of {encoder.name}{part}: nothing to do; {len(documents):,} documents are"
            f" cut into shards of {SHARD:,}, of which there are {shards:,}, one for each of the"
            f" first {shards:,} parts",
        )
        return
    columns = document_keys(encoder, documents)
    pace = _pace(batch_size, workers)
    new = embed_missing(_Documents(encoder), documents, columns, folder, pace, part)
    _tell(f"{encoder.name}{part}", mine - new, new)


def document_keys(encoder: Encoder, documents: Collection[Document]) -> ItemKeys:
    """Returns the keys under which document vectors are stored."""
    return keeping.item_keys(_Documents(encoder), documents)


def vector_space(encoder: Encoder) -> VectorSpace:
    """Returns the vector space of the encoder's document vectors."""
    return VectorSpace(encoder.document_key.fingerprint, encoder.normalized)


def _pace(batch_size: int, workers: int | None) -> BatchSizes:
    return BatchSizes(shard=SHARD, batch=batch_size, workers=workers or available_cores())


def _folder(encoder: Encoder, documents: Collection[Document], root: Path | str) -> Path:
    """Returns the folder of the vectors, and writes the encoder's manifest."""
    if not documents:
        raise VragError(
            "the corpus is empty: there is nothing to embed. Check the annotations and the image"
            " folder."
        )
    folder = documents_folder(encoder, root)
    with catch_disk_errors(folder):
        write_manifest(embeddings_folder(encoder, root), encoder)
    return folder


def _tell(what: str, there: int, new: int) -> None:
    logger.info(f"embeddings of {what}: {there:,} from disk, {new:,} new")


class _Documents:
    """Documents as an embedding source."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.label = f"embedding with {encoder.name}"
        self.unit = "documents"
        self.space = vector_space(encoder)

    def doc_id(self, document: Document) -> str:
        return document.doc_id

    def stamp(self, document: Document) -> str:
        return self._encoder.modalities.stamp(document)

    def content(self, document: Document) -> str:
        return self._encoder.modalities.content(document, self._encoder.name)

    def prepare(self, document: Document) -> Prepared:
        return self._encoder.prepare(document)

    def encode(self, prepared: Sequence[Prepared], names: Sequence[str]) -> np.ndarray:
        vectors = self._encoder.encode_documents(prepared)
        validate_embeddings(vectors, names, self._encoder)
        return vectors
