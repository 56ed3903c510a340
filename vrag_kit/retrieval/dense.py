"""Exact nearest-neighbour search, among a query's candidates or in the whole corpus.

A tie is broken by doc_id, descending, as trec_eval does, also at the cut: of equal documents, the
last ids by name are found. Scores are FAISS's inner products of one pair at a time: neither another
query nor another document changes a bit, and equal vectors have equal scores.

A large corpus is first searched by products of blocks, whose last bits depend on the block. Any
document among the exact k best is within twice the largest rounding error of the k-th block
product; the documents above that bound are compared pair by pair. Where the bound cuts through the
documents that were found, as many ties do, more are found.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.encoders.base import Encoder, check_dimensions, validate_embeddings
from vrag_kit.retrieval.runs import make_run
from vrag_kit.retrieval.shards import Embeddings, pack, unpack
from vrag_kit.types import Benchmark, DocId, Query, QueryId

FEW = 4096
"""Up to this many documents, all are compared pair by pair."""
MARGIN = 64
"""Documents beyond k that are found at first; there may be this many near-ties."""
QUERIES, DOCUMENTS = 1024, 16_384
"""Of a matrix product."""
READ = 512
"""Queries whose candidates are read at once."""

Hit = tuple[float, str]  # score, doc_id


def nearest_neighbors(
    vectors: np.ndarray, known: Embeddings, k: int, pool: np.ndarray | None = None
) -> list[list[Hit]]:
    """Returns the k best (score, doc_id) of each query, best first, ties by doc_id descending.
    Returns all documents where there are fewer than k.

    `vectors`: float32, shape (queries, d); `pool`: the positions in `known` to search, by default
    all.
    """
    pool = np.arange(len(known)) if pool is None else pool
    if len(pool) <= FEW:
        rows = known.rows(pool)
        return [_best(vector, pool, rows, known, k) for vector in vectors]
    hits: list[list[Hit]] = []
    candidates = _candidates(vectors, known, k, pool)
    for first in range(0, len(vectors), READ):
        block = candidates[first : first + READ]
        positions = np.unique(np.concatenate(block))
        rows = known.rows(positions)
        for vector, mine in zip(vectors[first:], block, strict=False):
            own = rows[np.searchsorted(positions, mine)]
            hits.append(_best(vector, mine, own, known, k))
    return hits


def _best(
    vector: np.ndarray, positions: np.ndarray, rows: np.ndarray, known: Embeddings, k: int
) -> list[Hit]:
    """Returns the k best of some documents, whose vectors are `rows`."""
    scores, order = top_inner_products(vector, rows, k + 1)
    if len(scores) > k and scores[k] == scores[k - 1]:  # a tie at the cut
        scores, order = top_inner_products(vector, rows, len(rows))
    names = known.ids.take(positions[order])
    return sorted(zip(scores.tolist(), names, strict=True), reverse=True)[:k]


def _candidates(
    vectors: np.ndarray, known: Embeddings, k: int, pool: np.ndarray
) -> list[np.ndarray]:
    """Returns the positions that may be among the k best of each query."""
    found = [pool] * len(vectors)
    left = np.arange(len(vectors))
    width = k + MARGIN
    order = known.in_disk_order(pool)
    while len(left) and width < len(pool):
        heap, longest = _scan(vectors[left], known, width, order)
        # Two float32 sums of d products differ by at most d * epsilon times both lengths (Higham
        # 2002, Accuracy and Stability of Numerical Algorithms, section 3.1); this is twice that.
        lengths = np.linalg.norm(vectors[left], axis=1)
        error = 2 * vectors.shape[1] * np.finfo(np.float32).eps * lengths * longest
        bounds = heap.D[:, k - 1] - 2 * error
        settled = heap.D[:, -1] < bounds
        for row in np.flatnonzero(settled):
            found[left[row]] = order[heap.I[row, heap.D[row] >= bounds[row]]]
        left = left[~settled]
        width *= 8
    return found


def _scan(
    vectors: np.ndarray, known: Embeddings, width: int, order: np.ndarray
) -> tuple[Any, float]:
    """Returns FAISS's heap of the largest matrix products of each query, descending: `D`, float32,
    and `I`, their places in `order`, shape (queries, width); and the largest length of a document's
    vector.
    """
    faiss = _faiss()
    heap = faiss.ResultHeap(len(vectors), width, keep_max=True)
    longest = 0.0
    for start in range(0, len(order), DOCUMENTS):
        rows = known.rows(order[start : start + DOCUMENTS])
        longest = max(longest, float(np.einsum("ij,ij->i", rows, rows).max()) ** 0.5)
        for first in range(0, len(vectors), QUERIES):
            products = vectors[first : first + QUERIES] @ rows.T
            heap.heaps.addn(len(rows), faiss.swig_ptr(products), start, first, len(products))
    heap.finalize()
    return heap, longest


def top_inner_products(
    vector: np.ndarray, rows: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the k largest inner products of `vector` with the rows, and their positions. FAISS
    computes them one pair at a time.
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


def dense_run(
    encoder: Encoder,
    embeddings: Embeddings,
    queries: Iterable[Query],
    k: int,
    candidates: Callable[[QueryId], tuple[DocId, ...] | None] = lambda query_id: None,
    left_out: Mapping[QueryId, frozenset[DocId]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Returns the `k` nearest documents of each query as a run (see `retrieval.runs`), by exact
    inner products, as in section 5.1 of the Visual-RAG paper. A query with fewer candidates
    gets all of them; ties are ordered by doc_id descending, also at the cutoff.

    `candidates(query_id)` returns the documents to search for a query, or None for all. It is
    usually `benchmark.candidates`; documents in `left_out` are dropped from the results.

    Raises `VragError` when k is below 1, when no query is given, for an invalid query vector
    (`validate_embeddings`), and for document vectors of another encoder (`check_dimensions`).
    """
    queries = list(queries)
    if not queries or k < 1:
        raise VragError(f"nothing to search: {len(queries)} queries, k = {k}; expected 1 or more.")
    vectors = encoder.encode_queries(queries)
    validate_embeddings(vectors, [query.query_id for query in queries], encoder)
    check_dimensions(encoder, vectors.shape[1], embeddings.dim)
    pools: dict[tuple[DocId, ...] | None, list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        pools[candidates(query.query_id)].append(number)
    ranked: dict[int, list[Hit]] = {}
    for names, numbers in pools.items():
        excluded = [left_out.get(queries[number].query_id, frozenset()) for number in numbers]
        pool = None if names is None else embeddings.positions(names)
        deeper = k + max(map(len, excluded))
        hits = nearest_neighbors(vectors[numbers], embeddings, deeper, pool)
        for number, found, out in zip(numbers, hits, excluded, strict=True):
            ranked[number] = [hit for hit in found if hit[1] not in out][:k]
    rows: list[tuple[str, str, float]] = []
    for number, query in enumerate(queries):
        rows += [(query.query_id, doc_id, score) for score, doc_id in ranked[number]]
    return make_run(rows)


_SEARCH_VERSION = 1
"""Version of this module's key, and of the search itself."""


def search_key(benchmark: Benchmark, encoder: Encoder, k: int) -> str:
    """Returns a hash of everything that determines the encoder's results for the benchmark.

    Raises `VragError` for a question without a part that is encoded, and for an image whose file is
    missing.
    """
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        digest.update(json.dumps(parts).encode())

    add(_SEARCH_VERSION, encoder.fingerprint, k, len(benchmark.queries))
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
    """Returns the run of a finished search; None if it is missing or damaged."""
    try:
        rows = unpack(_run_path(folder, key).read_bytes())
    except (OSError, ValueError, zlib.error):
        return None
    return make_run((str(query), str(doc), float(score)) for query, doc, score in rows)


def write_cached_run(folder: Path, key: str, run: pd.DataFrame) -> None:
    """Stores a finished search, whose scores are read back bit for bit.

    Raises `OSError` when it cannot be written.
    """
    rows = list(run[["query_id", "doc_id", "score"]].itertuples(index=False, name=None))
    write_file(_run_path(folder, key), pack(rows))


def _run_path(folder: Path, key: str) -> Path:
    return folder / "runs" / f"{key[:32]}.json.gz"
