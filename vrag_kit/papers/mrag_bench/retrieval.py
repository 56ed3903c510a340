"""Retrieval results on MRAG-Bench by scenario (Table 6), under the standard names of
the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, rankdata

from vrag_kit.analysis import cluster_means, to_percent
from vrag_kit.generation.contexts import ranked_documents
from vrag_kit.papers.mrag_bench.results import NAMES, OVERALL, scenario_weights
from vrag_kit.papers.mrag_bench.settings import QUESTIONS, TOP, ranked_run
from vrag_kit.retrieval import score_runs
from vrag_kit.types import Benchmark, ordered

_KEY = ["retriever", "scenario", "metric"]
_ROWS = "rows"
PLANTED = 2
"""Number of ground-truth images that `runs_with_inserted_gold` inserts: the paper's CLIP shows 1.9
of five where it shows any.
"""
TERMS = (
    "Retrieved set: the images that come with the questions. Planted: gold images put on top of it"
    " for that share of the questions. A CLIP searches by the question's text, -by-image by its"
    " image, -by-both by their sum; a composed retriever reads both."
)
"""How a caption defines the runs."""


def run_names(runs: Iterable[str]) -> dict[str, str]:
    """Returns `NAMES`, with short names for the rows' own run and those with inserted gold."""
    own = [name for name in runs if name.split(",")[0] == _ROWS]
    return NAMES | {name: name.replace(_ROWS, "retrieved set", 1) for name in own}


def runs_with_inserted_gold(
    benchmark: Benchmark, run: pd.DataFrame, shares: Sequence[float], *, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Builds runs with gold images inserted for a share of the queries. Keys: "rows" for the run of
    `shipped_run`, and for each share "rows, 50 % planted", with the first `PLANTED` ground-truth
    images on top for that share of the queries. `seed` selects the queries, nested over shares.
    Such a run is an oracle with a given hit rate, not a retriever.
    """
    found = ranked_documents(benchmark, run)
    order = ordered(list(benchmark.queries), seed, "planted")
    runs = {_ROWS: run}
    for share in shares:
        ranked = dict(found)
        for query_id in order[: round(share * len(order))]:
            gold = benchmark.relevant(query_id)[:PLANTED]
            ranked[query_id] = list(dict.fromkeys([*gold, *found[query_id]]))
        runs[f"{_ROWS}, {100 * share:.0f} % planted"] = ranked_run(ranked)
    return runs


def is_evaluated_retriever(retrievers: pd.Series) -> pd.Series:
    """Whether names of runs are those of listed retrievers: neither with inserted gold, nor the
    rows' own, which on the paper's data are CLIP's and would count it twice.
    """
    return ~retrievers.astype(str).str.fullmatch(f"{_ROWS}(, .* planted)?")


def retrieval_by_scenario(
    benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], *, k: int = TOP
) -> pd.DataFrame:
    """Computes hit rate and true recall of the first k documents. Columns: retriever, scenario,
    metric, value, ci_low, ci_high, n, n_failed, excluded, in the scenarios' order; "random order"
    and "perfect order" too.

    Values are in percent. "hit@5" is 1 if any ground-truth image is among the five, which the paper
    calls "Recall@5"; "recall@5" is the share of the ground truth among them. In "overall" scenarios
    are weighted by their questions in the paper, whatever their share here. Intervals are over
    groups of questions with common images. `excluded` is the benchmark's setting of what a query
    must not retrieve.
    """
    scores = score_runs(benchmark, runs, cutoffs=(k,)).query("metric in ('hit', 'recall')")
    about = {query_id: query.metadata for query_id, query in benchmark.queries.items()}
    scenario = scores["query_id"].map(lambda query_id: about[query_id]["scenario"])
    scores = scores.assign(scenario=scenario, metric=scores["metric"] + f"@{k}")
    whole = cluster_means(scores, ["retriever", "metric"], weights=scenario_weights(benchmark))
    both = pd.concat([whole.assign(scenario=OVERALL), cluster_means(scores, _KEY)])
    both["excluded"] = next((row.get("excluded", "") for row in about.values()), "")
    order = both["scenario"].map([OVERALL, *QUESTIONS].index).argsort(kind="stable")
    columns = [*_KEY, "value", "ci_low", "ci_high", "n", "n_failed", "excluded"]
    return to_percent(both[columns].iloc[order].reset_index(drop=True))


WITHIN = "within scenarios"
"""All scenarios pooled, each minus its own means: only the retriever varies."""
_TINY = 1e-12
_MOST = 8  # retrievers whose orders are all gone through: 40,320


def retrieval_accuracy_correlations(hits: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Correlates retrieval scores and accuracy over the retrievers. Columns: model, metric
    ("hit@5", "recall@5"), scenario ("overall", each, and "within scenarios"), n (retrievers),
    pearson, ci_low, ci_high, p, p_least, spearman. Only listed retrievers count
    (`is_evaluated_retriever`).

    `hits` are `retrieval_by_scenario` or Table 6, `results` `accuracy_by_scenario` by model and
    retriever, or Table 7; aspects are left out. The interval is Fisher's; NaN below four retrievers
    and within scenarios. p is exact: the share of all permutations of accuracies over the
    retrievers whose |r| is at least as large; p_least is the smallest possible for this number of
    retrievers. NaN if a column is constant, and p beyond eight retrievers.
    """
    right = results.query("metric == 'accuracy' and level != 'aspect'")
    keys = ["retriever", "scenario"]
    both = right[["model", *keys, "value"]].merge(hits[[*keys, "metric", "value"]], on=keys)
    both = both[is_evaluated_retriever(both["retriever"])]
    rows: list[dict[str, object]] = []
    for (model, metric), part in both.groupby(["model", "metric"], sort=False):
        wide = part.pivot_table(
            index="scenario", columns="retriever", values=["value_x", "value_y"], sort=False
        )
        families = {scenario: wide.loc[[scenario]] for scenario in wide.index}
        inner = wide.drop(index=OVERALL, errors="ignore")
        if len(inner) > 1:
            families[WITHIN] = inner
        for scenario, some in families.items():
            found = _correlation(some["value_x"].to_numpy(), some["value_y"].to_numpy())
            rows.append({"model": model, "metric": metric, "scenario": scenario, **found})
    numbers = ["n", "pearson", "ci_low", "ci_high", "p", "p_least", "spearman"]
    return pd.DataFrame(rows, columns=["model", "metric", "scenario", *numbers])


def _correlation(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The numbers of scenarios × retrievers: each scenario less its mean, orders of the retrievers
    the same in all.
    """
    n = x.shape[1]
    found = {"n": n, "pearson": _pearson(x, y)}
    found["spearman"] = _pearson(rankdata(x, axis=1), rankdata(y, axis=1))
    if len(x) == 1 and n >= 4 and abs(found["pearson"]) < 1:
        interval = pearsonr(x[0], y[0]).confidence_interval()
        found |= {"ci_low": interval.low, "ci_high": interval.high}
    if math.isfinite(found["pearson"]) and n <= _MOST:
        every = np.abs([_pearson(x, y[:, list(order)]) for order in permutations(range(n))])
        found["p"] = (every >= abs(found["pearson"]) - _TINY).mean()
        found["p_least"] = (every >= every.max() - _TINY).mean()
    return found


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    left, right = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    size = math.sqrt(float((left**2).sum() * (right**2).sum()))
    return float((left * right).sum()) / size if size > _TINY else math.nan
