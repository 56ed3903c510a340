"""Relation of retrieval quality and accuracy (Figure 5, left): both by retriever, their correlation
with exact p-values for four points, and accuracy by retrieval hit of each question.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pandas as pd

from vrag_kit.papers.mrag_bench.results import OVERALL
from vrag_kit.papers.mrag_bench.retrieval import is_evaluated_retriever
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark

WITHIN = "within scenarios"
"""All scenarios pooled, each minus its own means: only the retriever varies."""
_X, _Y = "retrieval_score", "accuracy"
_KEY = ["model", "retriever", "scenario", "metric"]
_TINY = 1e-12
_MOST = 8  # retrievers whose orders are all gone through: 40,320


def retrieval_vs_accuracy(hits: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Joins retrieval scores and accuracies by model, retriever and scenario ("overall" too).
    Columns: model, retriever, scenario, metric ("hit@5", "recall@5"), retrieval_score,
    retrieval_score_low, retrieval_score_high, accuracy, accuracy_low, accuracy_high, n, n_failed.

    `hits` are `retrieval_by_scenario`, `results` accuracies of `accuracy_by_scenario` by
    model and retriever; aspects are left out.
    """
    names = {"value": _X, "ci_low": f"{_X}_low", "ci_high": f"{_X}_high"}
    found = hits.rename(columns=names)[["retriever", "scenario", "metric", *names.values()]]
    names = {"value": _Y, "ci_low": f"{_Y}_low", "ci_high": f"{_Y}_high"}
    right = results[(results["metric"] == "accuracy") & (results["level"] != "aspect")]
    right = right.rename(columns=names)
    right = right[["model", "retriever", "scenario", *names.values(), "n", "n_failed"]]
    both = right.merge(found, on=["retriever", "scenario"], sort=False)
    return both[[*_KEY, *(name for name in both if name not in _KEY)]]


def published_retrieval_vs_accuracy() -> pd.DataFrame:
    """Returns Tables 6 and 7 in the columns of `retrieval_vs_accuracy`, as shares, without
    intervals. Table 6's "Recall@5" is "hit@5" here: counted in the rows' own `retrieved_images`,
    eight of CLIP's nine cells are hits among the five images to the last digit.
    """
    accuracies = published("mrag_bench", 7)[["model", "retriever", "scenario", "value"]]
    both = published("mrag_bench", 6).merge(
        accuracies, on=["retriever", "scenario"], suffixes=("_hit", "")
    )
    ends = dict.fromkeys((f"{_X}_low", f"{_X}_high", f"{_Y}_low", f"{_Y}_high"), math.nan)
    scores = {_X: both["value_hit"] / 100, _Y: both["value"] / 100}
    return both.assign(**scores, **ends, n_failed=0)[[*_KEY, _X, *ends, _Y, "n", "n_failed"]]


def retrieval_accuracy_correlations(both: pd.DataFrame) -> pd.DataFrame:
    """Correlates retrieval_score and accuracy over the retrievers. Columns: model, metric, scenario
    ("overall", each, and "within scenarios"), n (retrievers), pearson, ci_low, ci_high, p, p_least,
    spearman. Only listed retrievers count (`is_evaluated_retriever`).

    The interval is Fisher's, tanh(atanh r ± 1.96 / √(n − 3)); NaN below four retrievers and within
    scenarios. p is exact: the share of all permutations of accuracies over the retrievers whose |r|
    is at least as large; p_least is the smallest possible for this number of retrievers. NaN if a
    column is constant, and p beyond eight retrievers.
    """
    rows: list[tuple[object, ...]] = []
    retrievers = both[is_evaluated_retriever(both["retriever"])]
    for (model, metric), part in retrievers.groupby(["model", "metric"], sort=False):
        found = part.pivot_table(index="scenario", columns="retriever", values=_X, sort=False)
        right = part.pivot_table(index="scenario", columns="retriever", values=_Y, sort=False)
        x, y = found.to_numpy(), right.loc[found.index, found.columns].to_numpy()
        for place, scenario in enumerate(found.index):
            one = slice(place, place + 1)
            told = _correlation(x[one], y[one])
            rows.append((model, metric, scenario, *told, *_fisher(told[1], told[0])))
        inner = (found.index != OVERALL).nonzero()[0]
        if len(inner) > 1:
            told = _correlation(x[inner], y[inner])
            rows.append((model, metric, WITHIN, *told, math.nan, math.nan))
    numbers = ["n", "pearson", "spearman", "p", "p_least", "ci_low", "ci_high"]
    table = pd.DataFrame(rows, columns=["model", "metric", "scenario", *numbers])
    first = ["model", "metric", "scenario", "n", "pearson", "ci_low", "ci_high"]
    return table[[*first, "p", "p_least", "spearman"]]


def _correlation(x: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """n, Pearson's r, Spearman's, p and the least p, of scenarios × retrievers: each
    scenario less its mean, orders of the retrievers the same in all.
    """
    n = x.shape[1]
    r = _pearson(x, y)
    rho = _pearson(_ranked(x), _ranked(y))
    if not math.isfinite(r) or n > _MOST:
        return n, r, rho, math.nan, math.nan
    every = np.array([_pearson(x, y[:, order]) for order in map(list, permutations(range(n)))])
    return n, r, rho, float((abs(every) >= abs(r) - _TINY).mean()), _least(every)


def _least(every: np.ndarray) -> float:
    """The share of the orders with the largest |r|."""
    return float((abs(every) >= abs(every).max() - _TINY).mean())


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    left, right = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    size = math.sqrt(float((left**2).sum() * (right**2).sum()))
    return float((left * right).sum()) / size if size > _TINY else math.nan


def _ranked(values: np.ndarray) -> np.ndarray:
    """The rank of each value in its row; ties share theirs."""
    return pd.DataFrame(values).rank(axis=1).to_numpy()


def _fisher(r: float, n: float) -> tuple[float, float]:
    """The ends of Fisher's interval."""
    if n < 4 or not abs(r) < 1:
        return math.nan, math.nan
    middle, half = math.atanh(r), 1.959964 / math.sqrt(n - 3)
    return math.tanh(middle - half), math.tanh(middle + half)


def with_retrieval_hit(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds the column hit: "hit" if the evidence shown includes a ground-truth image,
    else "miss".
    """
    relevant = {query_id: set(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    shown = zip(judged["query_id"], judged["doc_ids"], strict=True)
    hits = ["hit" if relevant[query] & set(doc_ids) else "miss" for query, doc_ids in shown]
    return judged.assign(hit=pd.Series(hits, judged.index, dtype=object))
