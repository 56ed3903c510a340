"""Vectors of questions; of those asked by their picture, each is made once and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vrag_kit.retrieval.directions import check_vectors
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.keeping import keep
from vrag_kit.retrieval.parts import content_hash
from vrag_kit.retrieval.shards import VectorSpace
from vrag_kit.retrieval.units import Pace
from vrag_kit.retrieval.vectors import Vectors
from vrag_kit.types import Query

PART = 128
"""Questions that an interruption can cost at most."""


def query_vectors(encoder: Encoder, queries: Sequence[Query], folder: Path) -> np.ndarray:
    """float32, shape (n, d), in the order of `queries`, at least one.

    Where the encoder is shown pictures they are kept in `folder`, which is the encoder's
    own (`embeddings_folder`), and made again when the picture or the question beside it
    changes. Raises `VragError` as `check_vectors` does, naming a query.
    """
    if encoder.shown.query == "text":
        return _encoded(encoder, queries)
    pace = Pace(shard=PART, batch=PART, workers=1)
    found = keep(_Questions(encoder), queries, folder / "queries", pace)
    return Vectors(folder / "queries", found.places, found.dim).rows(np.arange(len(queries)))


class _Questions:
    """Questions as an encoder is shown them."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.label = f"embedding with {encoder.name}"
        self.unit = "questions"
        self.space = VectorSpace(encoder.fingerprint, encoder.normalized)

    def doc_id(self, query: Query) -> str:
        return query.query_id

    def stamp(self, query: Query) -> str:
        """Changes whenever its vector may."""
        text, image = self._encoder.shown.of_query(query, self._encoder.name)
        told = hashlib.sha256((text or "").encode()).hexdigest()
        stamp = "" if image is None else image.stamp
        return f"{stamp} {told}"

    def content(self, query: Query) -> str:
        return content_hash(self._encoder.shown.of_query(query, self._encoder.name))

    def prepare(self, query: Query) -> Query:
        return query

    def encode(self, prepared: Sequence[Query], names: Sequence[str]) -> np.ndarray:
        return _encoded(self._encoder, prepared)


def _encoded(encoder: Encoder, queries: Sequence[Query]) -> np.ndarray:
    vectors = encoder.encode_queries(queries)
    check_vectors(vectors, [query.query_id for query in queries], encoder)
    return vectors
