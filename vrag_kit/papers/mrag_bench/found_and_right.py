"""How far a better retriever makes better answers (Figure 5, left): what retrievers find
beside what is right with it, what four points are worth as a correlation, and the same
asked of questions instead of retrievers.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pandas as pd

from vrag_kit.papers.mrag_bench.results import OVERALL
from vrag_kit.papers.mrag_bench.retrieval import is_listed, printed_hits
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark

WITHIN = "within scenarios"
"""All scenarios at once, each less its own means: what differs is the retriever alone."""
_KEY = ["model", "retriever", "scenario", "metric"]
_TINY = 1e-12
_MOST = 8  # retrievers whose orders are all gone through: 40,320


def found_and_right(hits: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Both shares of every model, retriever and scenario ("overall" too): model,
    retriever, scenario, metric ("hit@5", "recall@5"), found, found_low, found_high,
    right, right_low, right_high, n, n_failed.

    `hits` are `retrieval_by_scenario`, `results` accuracies of `accuracy_by_scenario` by
    model and retriever; aspects are left out.
    """
    names = {"value": "found", "ci_low": "found_low", "ci_high": "found_high"}
    found = hits.rename(columns=names)[["retriever", "scenario", "metric", *names.values()]]
    names = {"value": "right", "ci_low": "right_low", "ci_high": "right_high"}
    right = results[(results["metric"] == "accuracy") & (results["level"] != "aspect")]
    right = right.rename(columns=names)
    right = right[["model", "retriever", "scenario", *names.values(), "n", "n_failed"]]
    both = right.merge(found, on=["retriever", "scenario"], sort=False)
    return both[[*_KEY, *(name for name in both if name not in _KEY)]]


def printed_found_and_right() -> pd.DataFrame:
    """Tables 6 and 7 in the columns of `found_and_right`, as shares, without intervals;
    Table 6's "Recall@5" under the name of what it is, "hit@5".
    """
    right = published("mrag_bench", 7).rename(columns={"value": "right"})
    right = right.assign(right=right["right"] / 100).drop(columns="metric")
    both = printed_hits().rename(columns={"value": "found"})
    both = both.merge(right, on=["retriever", "scenario"], sort=False)
    ends = dict.fromkeys(("found_low", "found_high", "right_low", "right_high"), math.nan)
    both = both.assign(**ends, n_failed=0)
    return both[[*_KEY, "found", *ends, "right", "n", "n_failed"]]


def how_they_go_together(both: pd.DataFrame) -> pd.DataFrame:
    """Correlation of found and right over the retrievers: model, metric, scenario
    ("overall", each, and "within scenarios"), n (retrievers), pearson, ci_low, ci_high,
    p, p_least, spearman. Only listed retrievers count (`is_listed`).

    The interval is Fisher's, tanh(atanh r ± 1.96 / √(n − 3)); NaN below four retrievers
    and within scenarios. p is exact: the share of all orders in which accuracies could
    belong to the retrievers whose |r| is at least as large; p_least is the smallest that
    so few retrievers allow. NaN where a column never changes, and beyond eight
    retrievers p.
    """
    rows: list[tuple[object, ...]] = []
    retrievers = both[is_listed(both["retriever"])]
    for (model, metric), part in retrievers.groupby(["model", "metric"], sort=False):
        found = part.pivot_table(index="scenario", columns="retriever", values="found", sort=False)
        right = part.pivot_table(index="scenario", columns="retriever", values="right", sort=False)
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


def with_found(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """The table of answers with the column found: "found" where a ground-truth picture
    was among what was shown, else "missed".
    """
    relevant = {query_id: set(benchmark.relevant(query_id)) for query_id in benchmark.queries}
    shown = zip(judged["query_id"], judged["doc_ids"], strict=True)
    found = ["found" if relevant[query] & set(doc_ids) else "missed" for query, doc_ids in shown]
    return judged.assign(found=pd.Series(found, judged.index, dtype=object))
