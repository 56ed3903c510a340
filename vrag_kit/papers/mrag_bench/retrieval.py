"""Retrieval results on MRAG-Bench by scenario (Table 6), under the standard names of
the metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import cluster_means
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, scenario_weights
from vrag_kit.papers.mrag_bench.settings import TOP
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
