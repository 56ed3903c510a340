"""Vectors of questions; of those asked by their picture, each is made once and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.files import one_at_a_time
from vrag_kit.retrieval.embeddings import Embeddings, Key, check_vectors, read_shards, write_shard
from vrag_kit.retrieval.encoders import Encoder
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
    place = folder / "queries"
    keys = [_key(encoder, query) for query in queries]
    try:
        with one_at_a_time(folder, "embedding"):
            known, _ = read_shards(place)
            todo = dict(zip(keys, queries, strict=True))
            _embed(encoder, {key: todo[key] for key in todo if key not in known}, place)
            known, dim = read_shards(place)
    except OSError as error:
        raise VragError(
            f"{place}: embeddings cannot be stored ({error.strerror or error}). Free space or"
            " choose another `cache_dir`; finished shards are kept."
        ) from error
    kept = Embeddings(place, {str(number): known[key] for number, key in enumerate(keys)}, dim)
    return kept.vectors(kept.doc_ids)


def _embed(encoder: Encoder, todo: Mapping[Key, Query], place: Path) -> None:
    keys, queries = list(todo), list(todo.values())
    for start in range(0, len(keys), PART):
        rows = _encoded(encoder, queries[start : start + PART])
        write_shard(place, keys[start : start + PART], [rows])


def _encoded(encoder: Encoder, queries: Sequence[Query]) -> np.ndarray:
    vectors = encoder.encode_queries(queries)
    check_vectors(vectors, [query.query_id for query in queries], encoder)
    return vectors


def _key(encoder: Encoder, query: Query) -> Key:
    """(query_id, what changes whenever its vector may)."""
    text, image = encoder.shown.of_query(query, encoder.name)
    told = hashlib.sha256((text or "").encode()).hexdigest()
    stamp = "" if image is None else image.stamp
    return query.query_id, f"{stamp} {told}"
