"""Exact nearest-neighbour search, among a query's candidates or in the whole corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.manifests import embeddings_folder
from vrag_kit.retrieval.nearest import Hit, nearest_neighbors
from vrag_kit.retrieval.prefetch import batched
from vrag_kit.retrieval.query_vectors import query_vectors
from vrag_kit.retrieval.runs import make_run
from vrag_kit.types import Query

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
