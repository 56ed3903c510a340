"""Exact nearest-neighbour search with FAISS, within a query's candidates or over the
whole corpus.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.embeddings import Embeddings, check_vectors
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.run import make_run
from vrag_kit.types import Query


def _faiss() -> Any:
    """FAISS, imported after torch and single-threaded on macOS, where the two OpenMP
    runtimes clash.
    """
    import faiss

    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)
    return faiss


class FlatRetriever:
    """A flat inner-product index, as in section 5.1 of the paper."""

    def __init__(
        self,
        encoder: Encoder,
        embeddings: Embeddings,
        candidates: Callable[[str], tuple[str, ...] | None],
    ) -> None:
        """`candidates(query_id)` gives the documents a query is searched in, None for
        all; usually `benchmark.candidates`.
        """
        self._encoder, self._embeddings, self._candidates = encoder, embeddings, candidates

    def search(self, queries: Iterable[Query], k: int) -> pd.DataFrame:
        """The `k` nearest documents of each query as a run (see `retrieval.run`); ties
        by doc_id descending, also at the cut.

        Raises `VragError` when k is below 1 or larger than the number of candidates,
        when no query is given, and for a query whose vector is no direction.
        """
        queries = list(queries)
        if not queries or k < 1:
            raise VragError(
                f"nothing to search: {len(queries)} queries, k = {k}; expected at least one query"
                " and k of 1 or more."
            )
        vectors = self._encoder.encode_queries(queries)
        check_vectors(vectors, [query.query_id for query in queries], self._encoder)
        pools: dict[tuple[str, ...] | None, list[int]] = defaultdict(list)
        for position, query in enumerate(queries):
            pools[self._candidates(query.query_id)].append(position)
        rows: list[list[tuple[str, str, float]]] = [[] for _ in queries]
        for pool, positions in pools.items():
            names = pool if pool is not None else self._embeddings.doc_ids
            if k > len(names):
                raise VragError(
                    f"query {queries[positions[0]].query_id!r} has {len(names)} candidates, fewer"
                    f" than k = {k}. Choose k of at most {len(names)}."
                )
            index = self._index(names)
            for position in positions:
                rows[position] = [
                    (queries[position].query_id, doc_id, score)
                    for doc_id, score in nearest(index, names, vectors[position], k)
                ]
        return make_run(row for found in rows for row in found)

    def _index(self, names: Sequence[str]) -> Any:
        index = None
        for start in range(0, len(names), 65_536):
            vectors = self._embeddings.vectors(names[start : start + 65_536])
            index = index or _faiss().IndexFlatIP(vectors.shape[1])
            index.add(vectors)
        return index


def nearest(
    index: Any, names: Sequence[str], vector: np.ndarray, k: int
) -> list[tuple[str, float]]:
    """The k best (doc_id, score); searched deeper while the score at the cut is tied,
    so that ties break by doc_id.
    """
    depth = k
    while True:
        depth = min(len(names), 2 * depth)
        scores, places = index.search(vector[None, :], depth)
        if depth == len(names) or scores[0, depth - 1] < scores[0, k - 1]:
            break
    order = sorted(
        ((names[i], float(s)) for i, s in zip(places[0], scores[0], strict=True)),
        key=lambda hit: (hit[1], hit[0]),
        reverse=True,
    )
    return order[:k]
