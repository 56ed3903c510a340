"""Retrieval metrics of every query at several cutoffs.

They are those of the Visual-RAG paper (section 5.1, Table 2).

| metric | range | of the first k results |
|---|---|---|
| recall | [0, 1] | share of all relevant documents that are among them |
| hit | {0, 1} | 1 when at least one is relevant |
| hit_count | [0, k] | number that are relevant |
| ndcg | [0, 1] | DCG over the DCG of the best order of *all* relevant documents
(trec_eval's ndcg_cut) |
| ndcg_visual_rag | [0, 1] | DCG over the DCG of the best order of the *30 retrieved*,
cut at k; 0 when none of the 30 is relevant; NaN for a run that is too shallow |

DCG sums label / log2(rank + 1) (Järvelin & Kekäläinen 2002, ACM TOIS 20(4)). The last
definition is the one that fits the paper's Table 2; the standard one cannot reach its
values. A query without any relevant document has no value (NaN) and is left out of
means; a query without results has the value 0, as in `trec_eval -c`. `ndcg_visual_rag` has
no value either if fewer than 30 were retrieved although more have a label: the smaller
ideal would be reached more easily (`shallow_queries`). Relevant means a label
of 1 or more; labels below 0 count as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.config import catch_custom_errors, check_list, custom_spec, load_member
from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import Qrels, make_run
from vrag_kit.types import Benchmark

CUTOFFS = (1, 5, 10, 20, 30)
BY_DEPTH = "ndcg_visual_rag"
"""The metric whose ideal uses only retrieved documents, and so needs all of `DEPTH`."""
METRICS = ("recall", "ndcg", BY_DEPTH, "hit", "hit_count")
DEPTH = 30
"""Number of retrieved documents whose best order is the ideal of `ndcg_visual_rag`."""


def evaluate(
    run: pd.DataFrame,
    qrels: Qrels,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    metrics: Sequence[str | RetrievalMetric] = (),
) -> pd.DataFrame:
    """Returns every metric of every query of `qrels`: columns query_id, metric, k, value. Custom
    `metrics`, functions or "module:function", follow the kit's.

    A run may be shallow: missing ranks count as not relevant, and a query without results has 0;
    those of `shallow_queries` have no `ndcg_visual_rag`. Queries of the run without labels are
    ignored. Raises `VragError` for a cutoff below 1, when a run with results shares no query with
    the labels, which means that the two files do not belong together, and as `load_metrics` and
    `apply_metric` do.
    """
    custom = load_metrics(metrics)
    if not cutoffs or min(cutoffs) < 1:
        raise VragError(f"cutoffs are {list(cutoffs)}; expected numbers of 1 or more.")
    if len(run) and not set(run["query_id"]) & set(qrels):
        raise VragError(
            "the run and the relevance labels share no query: the run has"
            f" {run['query_id'].iloc[0]!r}, the labels have {next(iter(qrels), None)!r}."
        )
    depth = max(*cutoffs, DEPTH)
    gains = _gains(run, qrels, depth)
    ideal = _gains(oracle_run(qrels, depth), qrels, depth)
    relevant = np.array([sum(label > 0 for label in labels.values()) for labels in qrels.values()])
    judged = np.where(relevant > 0, 1.0, np.nan)
    deep = np.where(np.isin(list(qrels), list(shallow_queries(run, qrels))), np.nan, 1.0)
    tables = []
    for k in cutoffs:
        values = _values_at(k, gains, ideal, relevant)
        values[BY_DEPTH] *= deep
        for name, function in custom.items():
            values[name] = apply_metric(name, function, gains[:, :k] > 0, relevant, list(qrels))
        for metric, value in values.items():
            rows = {"query_id": list(qrels), "metric": metric, "k": k, "value": value * judged}
            tables.append(pd.DataFrame(rows))
    return pd.concat(tables, ignore_index=True)


def shallow_queries(run: pd.DataFrame, qrels: Qrels) -> dict[str, int]:
    """Returns the number of retrieved documents of each query too shallow for `ndcg_visual_rag`.
    Such a query has results, but fewer than 30 and fewer than have a label: the best order of the
    30 is unknown. If all queries with results are shallow, those without are included: their zeros
    alone are no mean of the run.
    """
    found = run["query_id"].value_counts().reindex(list(qrels), fill_value=0)
    labelled = np.array([len(labels) for labels in qrels.values()], int)
    shallow = (found > 0) & (found < np.minimum(DEPTH, labelled))
    whole = shallow.any() and shallow.equals(found > 0)
    return dict(found[shallow | whole])


def truncated_depth(run: pd.DataFrame, qrels: Qrels) -> int | None:
    """Returns the most results that the run holds for a query, if it may be truncated there.
    Nothing is then known of a larger k. None without results, and where those queries have pools
    that are ranked to their end: all documents with a label, also of 0.
    """
    counts = run["query_id"].value_counts()
    if counts.empty:
        return None
    deepest = int(counts.max())
    labels = [qrels.get(str(query_id), {}) for query_id in counts.index[counts == deepest]]
    ended = [len(each) <= deepest and min(each.values(), default=1) < 1 for each in labels]
    return None if all(ended) else deepest


def _values_at(
    k: int, gains: np.ndarray, ideal: np.ndarray, relevant: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns the metrics at one cutoff, in the order of `METRICS`, each of shape (queries,).

    `gains` and `ideal`: labels by rank, as retrieved and in the best order, shape (queries, depth);
    `relevant`: number of relevant documents, shape (queries,).
    """
    found = (gains[:, :k] > 0).sum(axis=1)
    of_30 = gains[:, :DEPTH]
    best = _dcg(-np.sort(-of_30, axis=1)[:, :k])
    return {
        "recall": found / np.maximum(relevant, 1),
        "ndcg": _dcg(gains[:, :k]) / np.maximum(_dcg(ideal[:, :k]), 1e-12),
        BY_DEPTH: np.divide(_dcg(of_30[:, :k]), best, out=np.zeros(len(gains)), where=best > 0),
        "hit": (found > 0).astype(float),
        "hit_count": found.astype(float),
    }


def _dcg(gains: np.ndarray) -> np.ndarray:
    """The sum over ranks of gain / log2(rank + 1), of each row."""
    discount = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
    return np.cumsum(gains * discount, axis=1)[:, -1]  # in the order of ranks


def _gains(run: pd.DataFrame, qrels: Qrels, depth: int) -> np.ndarray:
    """Labels by rank, shape (queries, depth); 0 where nothing was found."""
    row_of = {query_id: row for row, query_id in enumerate(qrels)}
    gains = np.zeros((len(qrels), depth))
    top = run.loc[run["rank"] <= depth, ["query_id", "doc_id", "rank"]]
    for query_id, doc_id, rank in top.itertuples(index=False):
        if query_id in row_of:
            gains[row_of[query_id], rank - 1] = max(0, qrels[query_id].get(doc_id, 0))
    return gains


def mean_metrics(per_query: pd.DataFrame) -> pd.DataFrame:
    """Returns means over queries that have a value: columns metric, k, value, n. Rows are in the
    order of `per_query`.
    """
    values = per_query.groupby(["metric", "k"], sort=False)["value"]
    return values.agg(value="mean", n="count").reset_index()


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
                f"query {query_id!r} has graded labels; a random baseline needs 0 and 1."
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
    for query_id in benchmark.queries:
        pool = benchmark.candidates(query_id)
        first = islice(benchmark.corpus if pool is None else pool, k)
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


RetrievalMetric = Callable[[np.ndarray, int], float]
"""A metric's value for one query's first k documents, from 0 to 1; NaN where it is undefined. NaN
is left out of means, and of their n.

Its arguments are whether each of the first k documents is relevant, best first, shape (k,), bool,
False after the last result; and the number of relevant documents, at least one.
"""
_ROUNDING = 1e-9


def load_metrics(entries: Sequence[str | RetrievalMetric]) -> dict[str, RetrievalMetric]:
    """Returns name → function, of functions and of "module:function". Names of `METRICS`, which are
    computed anyway, are skipped.

    A metric has its function's name. Raises `VragError` for an entry that names no function, and
    for a function without a name, or with one that is taken.
    """
    check_list(entries, "metrics")
    opened: dict[str, RetrievalMetric] = {}
    for entry in entries:
        if entry in METRICS:
            continue
        function: Any = entry
        if spec := custom_spec(entry):
            function, _ = load_member(spec, f"metric {spec!r}", "function", callable)
        name = str(getattr(function, "__name__", ""))
        if not name.isidentifier() or name in METRICS or name in opened:
            raise VragError(
                f"metric {entry!r}: expected one of {', '.join(METRICS)}, or a function as"
                ' "module:function", with a name that no other metric has.'
            )
        opened[name] = function
    return opened


def apply_metric(
    name: str,
    function: RetrievalMetric,
    relevant: np.ndarray,
    n_relevant: np.ndarray,
    query_ids: Sequence[str],
) -> np.ndarray:
    """Returns a metric's value for each query, shape (queries,). It is NaN for queries without
    relevant documents, for which the metric is not called.

    `relevant` has the shape (queries, k), `n_relevant` (queries,). Raises `VragError`, naming the
    query, for a metric that fails, or gives no number from 0 to 1.
    """
    values = np.full(len(query_ids), np.nan)
    for row in np.flatnonzero(n_relevant > 0).tolist():
        where = f"metric {name!r} of query {query_ids[row]!r} at k = {relevant.shape[1]}"
        with catch_custom_errors(f"{where}: it", function):
            found = function(relevant[row].copy(), int(n_relevant[row]))
        number = isinstance(found, int | float | np.number | np.bool_)
        if not number or found < -_ROUNDING or found > 1 + _ROUNDING:
            raise VragError(
                f"{where}: it gave {found!r}; expected a number from 0 to 1, or NaN where there is"
                " nothing to measure."
            )
        values[row] = np.clip(found, 0, 1)
    return values
