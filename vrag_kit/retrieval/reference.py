"""Reference scores: the exact expectation of a random order, and the perfect order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from math import comb

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.metrics import CUTOFFS, DEPTH
from vrag_kit.retrieval.runs import Qrels, make_run
from vrag_kit.types import Benchmark


def random_baseline(
    qrels: Qrels, pool_sizes: Mapping[str, int], *, cutoffs: Sequence[int] = CUTOFFS
) -> pd.DataFrame:
    """Returns the exact expectation of every metric under a uniformly random order of candidates.
    Nothing is sampled.

    `pool_sizes` gives the number of candidates of each query; labels must be 0 or 1, and all
    relevant documents are among the candidates. Returns query_id, metric, k, value as `evaluate`
    does, NaN for a query without relevant documents.

    With R relevant among N candidates, the number found in the first k is hypergeometric. For
    `ndcg_visual_rag`, the number H among the first 30 is; given H, each of the 30 ranks is relevant
    with probability H / 30.
    """
    rows = []
    for query_id, labels in qrels.items():
        if any(label not in (0, 1) for label in labels.values()):
            raise VragError(
                f"query {query_id!r} has graded labels; the random reference is defined for labels"
                " 0 and 1."
            )
        relevant = sum(labels.values())
        for k in cutoffs:
            for metric, value in _expected(pool_sizes[query_id], relevant, k).items():
                rows.append((query_id, metric, k, value if relevant else np.nan))
    return pd.DataFrame(rows, columns=["query_id", "metric", "k", "value"])


def _expected(pool: int, relevant: int, k: int) -> dict[str, float]:
    discount = np.cumsum(1 / np.log2(np.arange(2, max(k, DEPTH) + 2)))
    seen = min(k, pool)
    depth = min(DEPTH, pool)
    ideal = discount[min(relevant, k) - 1] if relevant else 1.0
    hits = np.arange(1, min(relevant, depth) + 1)
    again = discount[np.minimum(hits, k) - 1]
    chances = np.array([_chance(count, pool, relevant, depth) for count in hits.tolist()])
    reached = discount[min(k, depth) - 1]
    return {
        "recall": seen / pool,
        "ndcg": relevant / pool * discount[seen - 1] / ideal,
        "ndcg_visual_rag": float(np.sum(chances * hits / depth * reached / again)),
        "hit": 1.0 - _chance(0, pool, relevant, seen),
        "hit_count": relevant * seen / pool,
    }


def _chance(found: int, pool: int, relevant: int, drawn: int) -> float:
    """Returns the hypergeometric probability that `found` of `drawn` documents are relevant. It is
    a ratio of whole numbers, divided once.
    """
    ways = comb(relevant, found) * comb(pool - relevant, drawn - found)
    return ways / comb(pool, drawn)


def arbitrary_run(benchmark: Benchmark, k: int) -> pd.DataFrame:
    """Returns a placeholder run of the first k candidates of each query, in their given order. It
    has as many documents as a search finds, but not the same ones.
    """
    rows: list[tuple[str, str, float]] = []
    corpus = tuple(islice(benchmark.corpus, k))
    for query_id in benchmark.queries:
        pool = benchmark.candidates(query_id)
        first = corpus if pool is None else pool[:k]
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(first)]
    return make_run(rows)


def oracle_run(qrels: Qrels, k: int | None = None) -> pd.DataFrame:
    """Returns the perfect run, which ranks every judged document by its label. It holds the first
    `k` documents of each query, by default all.
    """
    rows: list[tuple[str, str, float]] = []
    for query_id, labels in qrels.items():
        best = sorted(((label, doc_id) for doc_id, label in labels.items()), reverse=True)[:k]
        rows += [(query_id, doc_id, float(label)) for label, doc_id in best]
    return make_run(rows)
