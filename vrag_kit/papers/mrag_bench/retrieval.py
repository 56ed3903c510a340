"""Retrieval results on MRAG-Bench by scenario (Table 6), under the standard names of
the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from vrag_kit.analysis import cluster_means, to_percent
from vrag_kit.generation.contexts import ranked_documents
from vrag_kit.papers.mrag_bench.results import NAMES, OVERALL, scenario_weights
from vrag_kit.papers.mrag_bench.settings import QUESTIONS, TOP
from vrag_kit.retrieval import make_run, score_runs
from vrag_kit.types import Benchmark, DocId, QueryId, ordered

_MEASURES = ("hit", "recall")
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


def shipped_run(benchmark: Benchmark) -> pd.DataFrame:
    """Returns the retrieved documents of the rows, the paper's CLIP, as a run, best first."""
    return _ranked_run(
        {query_id: query.metadata["retrieved"] for query_id, query in benchmark.queries.items()}
    )


def _ranked_run(documents: Mapping[QueryId, Iterable[DocId]]) -> pd.DataFrame:
    """A run with each query's documents, best first."""
    rows: list[tuple[QueryId, DocId, float]] = []
    for query_id, ranked in documents.items():
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(ranked)]
    return make_run(rows)


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
        chosen = order[: round(share * len(order))]
        gold = {query_id: benchmark.relevant(query_id)[:PLANTED] for query_id in chosen}
        ranked = {name: dict.fromkeys([*gold.get(name, ()), *found[name]]) for name in found}
        runs[f"{_ROWS}, {100 * share:.0f} % planted"] = _ranked_run(ranked)
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
    scores = score_runs(benchmark, runs, cutoffs=(k,))
    scores = scores[scores["metric"].isin(_MEASURES)]
    metadata = {query_id: query.metadata for query_id, query in benchmark.queries.items()}
    scenario = scores["query_id"].map(lambda query_id: metadata[query_id]["scenario"])
    scores = scores.assign(scenario=scenario, metric=scores["metric"] + f"@{k}")
    whole = cluster_means(scores, ["retriever", "metric"], weights=scenario_weights(benchmark))
    both = pd.concat([whole.assign(scenario=OVERALL), cluster_means(scores, _KEY)])
    both["excluded"] = next((row.get("excluded", "") for row in metadata.values()), "")
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
    rows: list[tuple[object, ...]] = []
    for (model, metric), part in both.groupby(["model", "metric"], sort=False):
        wide = part.pivot_table(
            index="scenario", columns="retriever", values=["value_y", "value_x"], sort=False
        )
        families = {scenario: wide.loc[[scenario]] for scenario in wide.index}
        inner = wide.drop(index=OVERALL, errors="ignore")
        if len(inner) > 1:
            families[WITHIN] = inner
        for scenario, some in families.items():
            found = _correlation(some["value_y"].to_numpy(), some["value_x"].to_numpy())
            ends = _fisher(found[1], math.nan if scenario == WITHIN else found[0])
            rows.append((model, metric, scenario, *found[:2], *ends, *found[2:]))
    numbers = ["n", "pearson", "ci_low", "ci_high", "p", "p_least", "spearman"]
    return pd.DataFrame(rows, columns=["model", "metric", "scenario", *numbers])


def _correlation(x: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """n, Pearson's r, p, the least p and Spearman's r of scenarios × retrievers: each scenario less
    its mean, orders of the retrievers the same in all.
    """
    n, r = x.shape[1], _pearson(x, y)
    rho = _pearson(rankdata(x, axis=1), rankdata(y, axis=1))
    if not math.isfinite(r) or n > _MOST:
        return n, r, math.nan, math.nan, rho
    every = np.abs([_pearson(x, y[:, list(order)]) for order in permutations(range(n))])
    p, least = ((every >= size - _TINY).mean() for size in (abs(r), every.max()))
    return n, r, float(p), float(least), rho


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    left, right = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    size = math.sqrt(float((left**2).sum() * (right**2).sum()))
    return float((left * right).sum()) / size if size > _TINY else math.nan


def _fisher(r: float, n: float) -> tuple[float, float]:
    """The ends of Fisher's interval."""
    if not (n >= 4 and abs(r) < 1):
        return math.nan, math.nan
    middle, half = math.atanh(r), 1.959964 / math.sqrt(n - 3)
    return math.tanh(middle - half), math.tanh(middle + half)
