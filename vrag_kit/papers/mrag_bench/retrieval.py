"""Retrieval results on MRAG-Bench by scenario (Table 6), under the standard names of
the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from vrag_kit.analysis import cluster_means
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, scenario_weights
from vrag_kit.papers.mrag_bench.settings import TOP
from vrag_kit.papers.published import published
from vrag_kit.retrieval import make_run, score_runs
from vrag_kit.types import Benchmark, ordered

_MEASURES = ("hit", "recall")
_KEY = ["retriever", "scenario", "metric"]
_ROWS = "rows"
_PLANTED = " planted"
PLANTED = 2
"""Number of ground-truth images that `runs_with_inserted_gold` inserts: the paper's CLIP shows 1.9
of five where it shows any.
"""


def shipped_run(benchmark: Benchmark) -> pd.DataFrame:
    """Returns the retrieved documents of the rows, the paper's CLIP, as a run, best first."""
    rows: list[tuple[str, str, float]] = []
    for query_id, query in benchmark.queries.items():
        for place, doc_id in enumerate(query.metadata["retrieved"]):
            rows.append((query_id, doc_id, -float(place)))
    return make_run(rows)


def runs_with_inserted_gold(
    benchmark: Benchmark, run: pd.DataFrame, shares: Sequence[float], *, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Builds runs with gold images inserted for a share of the queries. Keys: "rows" for the run of
    `shipped_run`, and for each share "rows, 50 % planted", with the first `PLANTED` ground-truth
    images on top for that share of the queries. `seed` selects the queries, nested over shares.
    Such a run is an oracle with a given hit rate, not a retriever.
    """
    found = {str(key): tuple(part["doc_id"]) for key, part in run.groupby("query_id", sort=False)}
    order = ordered(list(benchmark.queries), seed, "planted")
    runs = {_ROWS: run}
    for share in shares:
        chosen = set(order[: round(share * len(order))])
        rows: list[tuple[str, str, float]] = []
        for query_id, own in found.items():
            gold = benchmark.relevant(query_id)[:PLANTED] if query_id in chosen else ()
            ranked = dict.fromkeys((*gold, *own))
            rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(ranked)]
        runs[f"{_ROWS}, {share:.0%}{_PLANTED}".replace("%", " %")] = make_run(rows)
    return runs


def has_inserted_gold(retrievers: pd.Series) -> pd.Series:
    """Whether names of runs are those of `runs_with_inserted_gold`, which are no retrievers."""
    names = retrievers.astype(str).str
    return names.startswith(f"{_ROWS}, ") & names.endswith(_PLANTED)


def is_evaluated_retriever(retrievers: pd.Series) -> pd.Series:
    """Whether names of runs are those of listed retrievers: neither with inserted gold, nor the
    rows' own, which on the paper's data are CLIP's and would count it twice.
    """
    return ~has_inserted_gold(retrievers) & (retrievers.astype(str) != _ROWS)


def retrieval_by_scenario(
    benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], *, k: int = TOP
) -> pd.DataFrame:
    """Computes hit rate and true recall of the first k documents. Columns: retriever, scenario,
    metric, value, ci_low, ci_high, n, n_failed, excluded, in the scenarios' order; "random order"
    and "perfect order" too.

    Values are shares. "hit@5" is 1 if any ground-truth image is among the five, which the paper
    calls "Recall@5"; "recall@5" is the share of the ground truth among them. In "overall" scenarios
    are weighted by their questions in the paper, whatever their share here. Intervals are over
    groups of questions with common images. `excluded` is the benchmark's setting of what a query
    must not retrieve.
    """
    scores = score_runs(benchmark, runs, cutoffs=(k,))
    scores = scores[scores["metric"].isin(_MEASURES)]
    told = {query_id: query.metadata for query_id, query in benchmark.queries.items()}
    scenario = scores["query_id"].map({each: told[each]["scenario"] for each in told})
    scores = scores.assign(scenario=scenario, metric=scores["metric"] + f"@{k}")
    whole = cluster_means(scores, ["retriever", "metric"], weights=scenario_weights(benchmark))
    both = [whole.assign(scenario=OVERALL), cluster_means(scores, _KEY)]
    columns = [*_KEY, "value", "ci_low", "ci_high", "n", "n_failed"]
    excluded = next((each.get("excluded", "") for each in told.values()), "")
    table = pd.concat(both, ignore_index=True)[columns].assign(excluded=excluded)
    order = table["scenario"].map([OVERALL, *QUESTIONS].index)
    return table.iloc[order.argsort(kind="stable")].reset_index(drop=True)


WITHIN = "within scenarios"
"""All scenarios pooled, each minus its own means: only the retriever varies."""
_X, _Y = "retrieval_score", "accuracy"
_FOUND_AND_RIGHT_KEY = ["model", "retriever", "scenario", "metric"]
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
    return both[
        [*_FOUND_AND_RIGHT_KEY, *(name for name in both if name not in _FOUND_AND_RIGHT_KEY)]
    ]


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
    return both.assign(**scores, **ends, n_failed=0)[
        [*_FOUND_AND_RIGHT_KEY, _X, *ends, _Y, "n", "n_failed"]
    ]


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
