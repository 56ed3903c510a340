"""Exact nearest neighbours, among a query's candidates or in the whole corpus."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.embeddings import Embeddings, embeddings_folder
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.query_vectors import query_vectors
from vrag_kit.retrieval.run import make_run
from vrag_kit.types import Query

DOCUMENTS, QUERIES = 65_536, 256
"""How many are compared at once: a block of products takes 64 MB."""

Hit = tuple[float, str]  # score, doc_id


class FlatRetriever:
    """A flat inner-product index, as in section 5.1 of the Visual-RAG paper."""

    def __init__(
        self,
        encoder: Encoder,
        embeddings: Embeddings,
        candidates: Callable[[str], tuple[str, ...] | None],
        left_out: Mapping[str, frozenset[str]] | None = None,
        *,
        query_folder: Path | None = None,
    ) -> None:
        """`candidates(query_id)` gives the documents a query is searched in, None for
        all; usually `benchmark.candidates`. Those of `left_out` are found, and dropped.
        Vectors of pictures that are asked about are kept in `query_folder`, by default
        the encoder's own beside the documents'.
        """
        self._encoder = encoder
        self._embeddings = embeddings
        self._candidates = candidates
        self._left_out = left_out or {}
        own = embeddings_folder(encoder, embeddings.folder.parent)
        self._query_folder = query_folder or own

    def search(self, queries: Iterable[Query], k: int) -> pd.DataFrame:
        """The `k` nearest documents of each query as a run (see `retrieval.run`), all
        of them where it has fewer candidates; ties by doc_id descending, also at the
        cut.

        Raises `VragError` when k is below 1, when no query is given, for a query whose
        vector is no direction, and for documents' vectors of another encoder.
        """
        queries = list(queries)
        if not queries or k < 1:
            raise VragError(
                f"nothing to search: {len(queries)} queries, k = {k}; expected at least one query"
                " and k of 1 or more."
            )
        vectors = query_vectors(self._encoder, queries, self._query_folder)
        if vectors.shape[1] != self._embeddings.dim:
            raise VragError(
                f"{self._embeddings.folder}: vectors of {self._embeddings.dim} components, but"
                f" {self._encoder.name} makes {vectors.shape[1]}: another encoder made them. Name"
                " that one as retriever."
            )
        pools: dict[tuple[str, ...] | None, list[int]] = defaultdict(list)
        for position, query in enumerate(queries):
            pools[self._candidates(query.query_id)].append(position)
        found: dict[int, list[Hit]] = {}
        for pool, positions in pools.items():
            names = self._embeddings.doc_ids if pool is None else pool
            out = [self._out(queries[position]) for position in positions]
            deeper = k + max(len(each) for each in out)
            hits = nearest(vectors[positions], names, self._embeddings.vectors, deeper)
            for position, each, own in zip(positions, hits, out, strict=True):
                found[position] = [hit for hit in each if hit[1] not in own][:k]
        rows: list[tuple[str, str, float]] = []
        for position, query in enumerate(queries):
            rows += [(query.query_id, doc_id, score) for score, doc_id in found[position]]
        return make_run(rows)

    def _out(self, query: Query) -> frozenset[str]:
        return self._left_out.get(query.query_id, frozenset())


def nearest(
    vectors: np.ndarray,
    names: Sequence[str],
    rows_of: Callable[[Sequence[str]], np.ndarray],
    k: int,
) -> list[list[Hit]]:
    """The k best (score, doc_id) of each query, best first, equal scores by doc_id
    descending; all documents where there are fewer than k.

    `vectors`: float32, shape (queries, d); `rows_of(names)` gives the documents'
    vectors, shape (n, d), and is asked for a block of them at a time.
    """
    best: list[list[Hit]] = [[] for _ in vectors]
    for start in range(0, len(names), DOCUMENTS):
        block = names[start : start + DOCUMENTS]
        rows = rows_of(block)
        longest = float(np.linalg.norm(rows, axis=1).max())
        for first in range(0, len(vectors), QUERIES):
            asked = slice(first, first + QUERIES)
            products = vectors[asked] @ rows.T
            for vector, row, hits in zip(vectors[asked], products, best[asked], strict=True):
                places = _promising(row, hits, k, _doubt(vector, longest))
                scores = exact_products(vector, rows[places])
                hits += [(score, block[place]) for score, place in zip(scores, places, strict=True)]
                hits.sort(reverse=True)
                del hits[k:]
    return best


def _promising(products: np.ndarray, hits: Sequence[Hit], k: int, doubt: float) -> np.ndarray:
    """Places of the products that may be among the k best: all that exact products,
    which differ by `doubt` at most, could bring there.
    """
    floor = -np.inf
    if len(products) > k:
        floor = float(np.partition(products, -k)[-k]) - 2 * doubt
    if len(hits) == k:
        floor = max(floor, hits[-1][0] - doubt)
    return np.flatnonzero(products >= floor)


def _doubt(vector: np.ndarray, longest: float) -> float:
    """More than two ways to sum up a product of float32 vectors can lie apart.

    Each is off by d / 2 times epsilon and both lengths at most (Higham 2002, Accuracy
    and Stability of Numerical Algorithms, section 3.1); this is twice their difference.
    """
    epsilon = float(np.finfo(np.float32).eps)
    return 2 * len(vector) * epsilon * float(np.linalg.norm(vector)) * longest


def exact_products(vector: np.ndarray, rows: np.ndarray) -> list[float]:
    """The inner product of `vector` with each row as FAISS computes it, one pair at a
    time: neither other queries nor other documents change a bit of it, so that equal
    documents have equal scores.
    """
    if not len(rows):
        return []
    index = _faiss().IndexFlatIP(rows.shape[1])
    index.add(rows)
    scores, places = index.search(vector[None, :], len(rows))
    found = np.empty(len(rows), np.float32)
    found[places[0]] = scores[0]
    return [float(score) for score in found]


def _faiss() -> Any:  # a library without types
    """FAISS, imported after torch and single-threaded on macOS, where the two OpenMP
    runtimes clash.
    """
    import faiss

    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)
    return faiss
