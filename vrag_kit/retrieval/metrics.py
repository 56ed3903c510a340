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

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.own_metric import RetrievalMetric, apply_metric, load_metrics
from vrag_kit.retrieval.runs import Qrels

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
    own = load_metrics(metrics, METRICS)
    _check(run, qrels, cutoffs)
    depth = max(*cutoffs, DEPTH)
    gains = _gains(run, qrels, depth)
    ideal, relevant = _ideal(qrels, depth)
    judged = np.where(relevant > 0, 1.0, np.nan)
    shallow = list(shallow_queries(run, qrels))
    lacking = np.where(np.isin(list(qrels), shallow), np.nan, 1.0)
    tables = []
    for k in cutoffs:
        values = _measured(gains, ideal, relevant, k)
        values[BY_DEPTH] = values[BY_DEPTH] * lacking
        for name, function in own.items():
            values[name] = apply_metric(name, function, gains[:, :k] > 0, relevant, list(qrels))
        for metric in (*METRICS, *own):
            rows = {"query_id": list(qrels), "metric": metric, "k": k}
            tables.append(pd.DataFrame({**rows, "value": values[metric] * judged}))
    return pd.concat(tables, ignore_index=True)


def shallow_queries(run: pd.DataFrame, qrels: Qrels) -> dict[str, int]:
    """Returns the number of retrieved documents of each query too shallow for `ndcg_visual_rag`.
    Such a query has results, but fewer than 30 and fewer than have a label: the best order of the
    30 is unknown. If all queries with results are shallow, those without are included.
    """
    held = run["query_id"].value_counts()
    found = {query_id: int(held.get(query_id, 0)) for query_id in qrels}
    shallow = {
        query_id: found[query_id]
        for query_id, labels in qrels.items()
        if 0 < found[query_id] < min(DEPTH, len(labels))
    }
    # else the zeros of those without results would be the run's mean
    return found if shallow and len(shallow) == np.count_nonzero(list(found.values())) else shallow


def truncated_depth(run: pd.DataFrame, qrels: Qrels) -> int | None:
    """Returns the most results that the run holds for a query, if it may be truncated there.
    Nothing is then known of a larger k. None without results, and where those queries have pools
    that are ranked to their end: all documents with a label, also of 0.
    """
    held = run["query_id"].value_counts()
    if held.empty:
        return None
    deepest = int(held.max())
    labels = [qrels.get(str(query_id), {}) for query_id in held.index[held == deepest]]
    ended = [len(each) <= deepest and min(each.values(), default=1) < 1 for each in labels]
    return None if all(ended) else deepest


def _check(run: pd.DataFrame, qrels: Qrels, cutoffs: Sequence[int]) -> None:
    """Raise `VragError` for what cannot be evaluated."""
    if not cutoffs or min(cutoffs) < 1:
        raise VragError(f"cut-offs must be 1 or more, got {list(cutoffs)}.")
    if len(run) and not set(run["query_id"]) & set(qrels):
        raise VragError(
            "the run and the relevance labels share no query: the run has"
            f" {_some(list(run['query_id'].unique()))}, the labels have {_some(list(qrels))}."
        )


def _measured(
    gains: np.ndarray, ideal: np.ndarray, relevant: np.ndarray, k: int
) -> dict[str, np.ndarray]:
    """Returns the kit's metrics at one cutoff, a value per query, shape (queries,). Labels by rank,
    as retrieved and in the best order, have the shape (queries, depth).
    """
    found = (gains[:, :k] > 0).sum(axis=1)
    shallow = min(k, DEPTH)
    retrieved = -np.sort(-gains[:, :DEPTH], axis=1)
    again = _dcg(retrieved[:, :shallow])
    return {
        "recall": found / np.maximum(relevant, 1),
        "ndcg": _dcg(gains[:, :k]) / np.maximum(_dcg(ideal[:, :k]), 1e-12),
        BY_DEPTH: np.divide(
            _dcg(gains[:, :shallow]), again, out=np.zeros(len(gains)), where=again > 0
        ),
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


def _ideal(qrels: Qrels, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels in the best order, shape (queries, depth), and the number of relevant
    documents, shape (queries,).
    """
    ideal = np.zeros((len(qrels), depth))
    relevant = np.zeros(len(qrels))
    for row, labels in enumerate(qrels.values()):
        positive = sorted((label for label in labels.values() if label > 0), reverse=True)
        relevant[row] = len(positive)
        ideal[row, : min(depth, len(positive))] = positive[:depth]
    return ideal, relevant


def mean_metrics(per_query: pd.DataFrame) -> pd.DataFrame:
    """Returns means over queries that have a value: columns metric, k, value, n. Rows are in the
    order of `per_query`.
    """
    means = (
        per_query.groupby(["metric", "k"], sort=False)["value"]
        .agg(value="mean", n="count")
        .reset_index()
    )
    return means[["metric", "k", "value", "n"]]


def _some(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, list(ids)[:3])) + (" …" if len(ids) > 3 else "")
