"""Exact nearest-neighbour search by inner product, with ordered ties."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from vrag_kit.retrieval.embeddings import Embeddings

FEW = 4096
"""Up to this many documents, all are compared one by one, and nothing is read twice."""
QUERIES = 512
"""Queries per block that is compared with a block of documents."""

Hit = tuple[float, str]  # score, doc_id


def nearest_neighbors(
    vectors: np.ndarray, known: Embeddings, k: int, pool: np.ndarray | None = None
) -> list[list[Hit]]:
    """Returns the k best (score, doc_id) of each query, best first, ties by doc_id descending.
    Returns all documents where there are fewer than k.

    `vectors`: float32, shape (queries, d); `pool`: the positions in `known` to search, by default
    all. One matrix product selects the documents that may be among the best; those are then
    compared one by one.
    """
    wanted = np.arange(len(known)) if pool is None else pool
    if len(wanted) <= FEW:
        rows = known.rows(wanted)
        return [_best(vector, wanted, rows, known, k) for vector in vectors]
    hits: list[list[Hit]] = []
    promising = _promising(vectors, known.iter_blocks(pool), k)
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
    scores, order = top_inner_products(vector, rows, k + 1)
    if len(scores) > k and scores[k] == scores[k - 1]:  # a tie at the cut
        scores, order = top_inner_products(vector, rows, len(rows))
        reached = scores >= scores[k - 1]
        scores, order = scores[reached], order[reached]
    names = known.doc_ids_at(places[order])
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
    """Documents that may be among the k best of each query, pruned now and then."""

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
        """Add the products of a block that may be among the best; queries begin at `first`."""
        asked = slice(first, first + len(products))
        if products.shape[1] >= self._k and np.isneginf(self._kth[asked]).any():
            kth = np.partition(products, -self._k, axis=1)[:, -self._k]
            self._kth[asked] = np.maximum(self._kth[asked], kth)
        floors = self._kth[asked] - 2 * doubts
        good = np.flatnonzero(products >= floors[:, None])
        query, place = np.divmod(good, len(positions))
        self._found.append(_Products(query + first, positions[place], products.ravel()[good]))

    def tighten(self, doubts: np.ndarray, seen: int) -> None:
        """Drop products that are no longer among the best, each time the number seen doubles."""
        self._seen += seen
        if self._seen >= self._cut_at:
            self._cut_at = 2 * self._seen
            self._cut(doubts)

    def of_each(self, doubts: np.ndarray) -> list[np.ndarray]:
        """Returns the positions for each query."""
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


def top_inner_products(
    vector: np.ndarray, rows: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the k largest inner products of `vector` with the rows, and their positions. FAISS
    computes them one pair at a time: other queries and documents do not change a bit of one, and
    equal documents have equal scores.
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
