"""Exact nearest neighbours by inner product, with ties in order."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from vrag_kit.retrieval.embeddings import Embeddings

FEW = 4096
"""Documents of which all are compared one by one, so that nothing has to be read twice."""
QUERIES = 512
"""Queries that are compared at once with a piece of documents."""

Hit = tuple[float, str]  # score, doc_id


def nearest(
    vectors: np.ndarray, known: Embeddings, k: int, pool: np.ndarray | None = None
) -> list[list[Hit]]:
    """The k best (score, doc_id) of each query, best first, equal scores by doc_id
    descending; all documents where there are fewer than k.

    `vectors`: float32, shape (queries, d); `pool`: the positions in `known` that are
    searched, by default all. A product of all with all, read once, tells which documents
    may be among the best; those are then compared one by one.
    """
    wanted = np.arange(len(known)) if pool is None else pool
    if len(wanted) <= FEW:
        rows = known.rows(wanted)
        return [_best(vector, wanted, rows, known, k) for vector in vectors]
    hits: list[list[Hit]] = []
    promising = _promising(vectors, known.pieces(pool), k)
    for first in range(0, len(vectors), QUERIES):
        block = promising[first : first + QUERIES]
        places = np.unique(np.concatenate(block))
        rows = known.rows(places)
        for vector, mine in zip(vectors[first:], block, strict=False):
            own = rows[np.searchsorted(places, mine)]
            hits.append(_best(vector, mine, own, known, k))
    return hits


def _best(
    vector: np.ndarray, places: np.ndarray, rows: np.ndarray, known: Embeddings, k: int
) -> list[Hit]:
    """The k best of some documents, whose vectors are `rows`."""
    scores, order = best_products(vector, rows, k + 1)
    if len(scores) > k and scores[k] == scores[k - 1]:  # a tie at the cut
        scores, order = best_products(vector, rows, len(rows))
        reached = scores >= scores[k - 1]
        scores, order = scores[reached], order[reached]
    names = known.names(places[order])
    return sorted(zip(scores.tolist(), names, strict=True), reverse=True)[:k]


def _promising(
    vectors: np.ndarray, pieces: Iterable[tuple[np.ndarray, np.ndarray]], k: int
) -> list[np.ndarray]:
    """The positions of each query that may be among its k best: all that exact products
    could bring there.
    """
    candidates = _Candidates(len(vectors), k)
    longest = 0.0
    for positions, rows in pieces:
        longest = max(longest, float(np.einsum("ij,ij->i", rows, rows).max()) ** 0.5)
        doubts = _doubts(vectors, longest)
        for first in range(0, len(vectors), QUERIES):
            asked = slice(first, first + QUERIES)
            candidates.add(first, positions, vectors[asked] @ rows.T, doubts[asked])
        candidates.tighten(doubts, len(positions))
    return candidates.of_each(_doubts(vectors, longest))


def _doubts(vectors: np.ndarray, longest: float) -> np.ndarray:
    """More than two ways to sum up a product of float32 vectors can lie apart, for each
    query; `longest`: of a document's vector.

    Each is off by d / 2 times epsilon and both lengths at most (Higham 2002, Accuracy
    and Stability of Numerical Algorithms, section 3.1); this is twice their difference.
    """
    epsilon = float(np.finfo(np.float32).eps)
    doubts: np.ndarray = 2 * vectors.shape[1] * epsilon * np.linalg.norm(vectors, axis=1) * longest
    return doubts


class _Products(NamedTuple):
    """Products as columns: of which query, with the document at which position."""

    query: np.ndarray
    position: np.ndarray
    product: np.ndarray

    def at(self, rows: np.ndarray) -> _Products:
        """Some of the rows."""
        return _Products(self.query[rows], self.position[rows], self.product[rows])


class _Candidates:
    """What may be among the k best of each query, cut now and then."""

    def __init__(self, queries: int, k: int) -> None:
        self._k = k
        self._kth = np.full(queries, -np.inf, np.float32)
        """No more than the k-th best product of each query so far."""
        self._found: list[_Products] = []
        self._seen = 0
        self._cut_at = 0

    def add(
        self, first: int, positions: np.ndarray, products: np.ndarray, doubts: np.ndarray
    ) -> None:
        """Note what is good enough in a block of products, of the queries from `first`."""
        asked = slice(first, first + len(products))
        if products.shape[1] >= self._k and np.isneginf(self._kth[asked]).any():
            kth = np.partition(products, -self._k, axis=1)[:, -self._k]
            self._kth[asked] = np.maximum(self._kth[asked], kth)
        floors = self._kth[asked] - 2 * doubts
        good = np.flatnonzero(products >= floors[:, None])
        query, place = np.divmod(good, len(positions))
        self._found.append(_Products(query + first, positions[place], products.ravel()[good]))

    def tighten(self, doubts: np.ndarray, seen: int) -> None:
        """Forget what is not good enough any more; each time that twice as many were seen."""
        self._seen += seen
        if self._seen >= self._cut_at:
            self._cut_at = 2 * self._seen
            self._cut(doubts)

    def of_each(self, doubts: np.ndarray) -> list[np.ndarray]:
        """The positions for each query."""
        found = self._cut(doubts)
        return np.split(found.position, np.searchsorted(found.query, np.arange(1, len(self._kth))))

    def _cut(self, doubts: np.ndarray) -> _Products:
        found = _Products(*map(np.concatenate, zip(*self._found, strict=True)))
        found = found.at(np.lexsort((-found.product, found.query)))
        begins = np.searchsorted(found.query, np.arange(len(self._kth) + 1))
        kth = begins[:-1] + self._k - 1
        enough = kth < begins[1:]
        self._kth[enough] = np.maximum(self._kth[enough], found.product[kth[enough]])
        floors = self._kth - 2 * doubts
        found = found.at(np.flatnonzero(found.product >= floors[found.query]))
        self._found = [found]
        return found


def best_products(vector: np.ndarray, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest inner products of `vector` with the rows as FAISS computes them, one
    pair at a time, and their places: neither other queries nor other documents change a
    bit of one, so that equal documents have equal scores.
    """
    k = min(k, len(rows))
    if not k:
        return np.empty(0, np.float32), np.empty(0, np.int64)
    faiss = _faiss()
    scores, places = faiss.knn(vector[None, :], rows, k, metric=faiss.METRIC_INNER_PRODUCT)
    return scores[0], places[0]


def _faiss() -> Any:  # a library without types
    """FAISS, imported after torch and single-threaded on macOS, where the two OpenMP
    runtimes clash.
    """
    import faiss

    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)
    return faiss
