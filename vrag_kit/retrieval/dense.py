"""Exact nearest-neighbour search, among a query's candidates or in the whole corpus."""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.retrieval.manifests import embeddings_folder
from vrag_kit.retrieval.prefetch import batched
from vrag_kit.retrieval.query_vectors import query_vectors
from vrag_kit.retrieval.runs import make_run
from vrag_kit.types import Benchmark, Query

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


_TOGETHER = 512
"""Queries whose candidates are looked up at once."""


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
        """`candidates(query_id)` returns the documents to search for a query, or None for all. It
        is usually `benchmark.candidates`; documents in `left_out` are dropped from the results.
        Vectors of query images are cached in `query_folder`, by default the encoder's own folder
        next to the documents'.
        """
        self._encoder = encoder
        self._embeddings = embeddings
        self._candidates = candidates
        self._left_out = left_out or {}
        own = embeddings_folder(encoder, embeddings.folder.parent)
        self._query_folder = query_folder or own

    def search(self, queries: Iterable[Query], k: int) -> pd.DataFrame:
        """Returns the `k` nearest documents of each query as a run (see `retrieval.runs`). A query
        with fewer candidates gets all of them; ties are ordered by doc_id descending, also at the
        cutoff.

        Raises `VragError` when k is below 1, when no query is given, for an invalid query vector
        (`validate_embeddings`), and for document vectors of another encoder.
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
                f"retriever {self._encoder.name!r}: its vectors of questions have"
                f" {vectors.shape[1]} components, those of the documents in"
                f" {self._embeddings.folder} {self._embeddings.dim}; expected as many. Let a class"
                " of your own give both alike; else another encoder made them: name that one."
            )
        pools: dict[bytes | None, list[int]] = defaultdict(list)
        for position, pool in enumerate(self._pools(queries)):
            pools[pool].append(position)
        found: dict[int, list[Hit]] = {}
        for pool, positions in pools.items():
            out = [self._out(queries[position]) for position in positions]
            deeper = k + max(len(each) for each in out)
            within = None if pool is None else np.frombuffer(pool, np.int64)
            hits = nearest_neighbors(vectors[positions], self._embeddings, deeper, within)
            for position, each, own in zip(positions, hits, out, strict=True):
                found[position] = [hit for hit in each if hit[1] not in own][:k]
        ranked = [found[position] for position in range(len(queries))]
        asked = np.array([query.query_id for query in queries], object)
        everything = list(chain.from_iterable(ranked))
        columns = {
            "query_id": np.repeat(asked, [len(each) for each in ranked]),
            "doc_id": [doc_id for _, doc_id in everything],
            "score": [score for score, _ in everything],
        }
        return make_run(pd.DataFrame(columns))

    def _pools(self, queries: Sequence[Query]) -> Iterator[bytes | None]:
        """Yields the positions of each query's candidates, int64; None for all documents."""
        for some in batched(queries, _TOGETHER):
            pools = [self._candidates(query.query_id) for query in some]
            given = [pool for pool in pools if pool is not None]
            places = self._embeddings.positions(list(chain.from_iterable(given)))
            ends = np.cumsum([len(pool) for pool in given])
            each = iter(np.split(places, ends[:-1]))
            yield from (None if pool is None else next(each).tobytes() for pool in pools)

    def _out(self, query: Query) -> frozenset[str]:
        return self._left_out.get(query.query_id, frozenset())


_RULE = 1
"""Version of this module's key, and of the search itself."""


def search_key(benchmark: Benchmark, encoder: Encoder, k: int) -> str:
    """Returns a hash of everything that determines the encoder's results for the benchmark.

    Raises `VragError` for a question without a part that is encoded, and for an image whose file is
    missing.
    """
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        digest.update(json.dumps(parts).encode())

    add(_RULE, encoder.fingerprint, k, len(benchmark.queries))
    for query_id, query in benchmark.queries.items():
        text, image = encoder.modalities.of_query(query, encoder.name)
        add(query_id, text, None if image is None else image.stamp)
        add(benchmark.candidates(query_id))
        if left_out := benchmark.left_out.get(query_id):
            add("without", sorted(left_out))
    for doc_id, document in benchmark.corpus.items():
        add(doc_id, encoder.modalities.stamp(document))
    return digest.hexdigest()


def read_cached_run(folder: Path, key: str) -> pd.DataFrame | None:
    """Returns the run of a finished search; None if it is missing, damaged or without checksum.
    Searches made before vectors had checksums have none.
    """
    try:
        stored = json.loads(_path(folder, key).read_text(encoding="utf-8"))
        if stored["key"] != key or stored["crc32"] != _crc32(stored["run"]):
            return None
        return make_run((str(query), str(doc), float(score)) for query, doc, score in stored["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_cached_run(folder: Path, key: str, run: pd.DataFrame) -> None:
    """Stores a finished search, whose scores are read back bit for bit.

    Raises `VragError` when it cannot be written.
    """
    rows = list(run[["query_id", "doc_id", "score"]].itertuples(index=False, name=None))
    stored = {"key": key, "crc32": _crc32(rows), "run": rows}
    try:
        write_file(_path(folder, key), json.dumps(stored))
    except OSError as error:
        raise VragError(
            f"{folder}: the run cannot be stored ({error.strerror or error}). Free space or choose"
            " another `cache_dir`."
        ) from error


def _crc32(rows: object) -> int:
    return zlib.crc32(json.dumps(rows).encode())


def _path(folder: Path, key: str) -> Path:
    return folder / "runs" / f"{key[:32]}.json"
