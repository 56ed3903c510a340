"""Query vectors; those that use an image are cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vrag_kit.retrieval.encoders.base import Encoder, content_hash, validate_embeddings
from vrag_kit.retrieval.keeping import embed_all
from vrag_kit.retrieval.shards import VectorSpace
from vrag_kit.retrieval.units import BatchSizes
from vrag_kit.retrieval.vectors import Vectors
from vrag_kit.types import Query

PART = 128
"""Queries per shard, which is the most that an interruption can lose."""


def query_vectors(encoder: Encoder, queries: Sequence[Query], folder: Path) -> np.ndarray:
    """Returns query vectors, float32, shape (n, d), in the order of `queries`, at least one.

    If the encoder encodes query images, they are cached in `folder`, the encoder's own
    (`embeddings_folder`), and computed again when the image or its question changes. Raises
    `VragError` as `validate_embeddings` does, naming a query.
    """
    if encoder.modalities.query == "text":
        return _encoded(encoder, queries)
    pace = BatchSizes(shard=PART, batch=PART, workers=1)
    found = embed_all(_Questions(encoder), queries, folder / "queries", pace)
    return Vectors(folder / "queries", found.places, found.dim).rows(np.arange(len(queries)))


class _Questions:
    """Queries as an embedding source."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.label = f"embedding with {encoder.name}"
        self.unit = "questions"
        self.space = VectorSpace(encoder.fingerprint, encoder.normalized)

    def doc_id(self, query: Query) -> str:
        return query.query_id

    def stamp(self, query: Query) -> str:
        """Returns a stamp that changes whenever the query's vector may change."""
        text, image = self._encoder.modalities.of_query(query, self._encoder.name)
        told = hashlib.sha256((text or "").encode()).hexdigest()
        stamp = "" if image is None else image.stamp
        return f"{stamp} {told}"

    def content(self, query: Query) -> str:
        return content_hash(self._encoder.modalities.of_query(query, self._encoder.name))

    def prepare(self, query: Query) -> Query:
        return query

    def encode(self, prepared: Sequence[Query], names: Sequence[str]) -> np.ndarray:
        return _encoded(self._encoder, prepared)


def _encoded(encoder: Encoder, queries: Sequence[Query]) -> np.ndarray:
    vectors = encoder.encode_queries(queries)
    validate_embeddings(vectors, [query.query_id for query in queries], encoder)
    return vectors
