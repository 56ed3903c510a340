"""How well retrievers find the examples of MRAG-Bench, by scenario (Table 6), under the
names that the measures have.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.analysis import summarise
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, papers_mix
from vrag_kit.papers.mrag_bench.settings import TOP
from vrag_kit.papers.published import published
from vrag_kit.retrieval import make_run, score_runs
from vrag_kit.types import Benchmark

_MEASURES = ("hit", "recall")
_KEY = ["retriever", "scenario", "metric"]


def rows_run(benchmark: Benchmark) -> pd.DataFrame:
    """What the rows themselves hold as retrieved, best first: the paper's CLIP, as a run."""
    rows: list[tuple[str, str, float]] = []
    for query_id, query in benchmark.queries.items():
        for place, doc_id in enumerate(query.metadata["retrieved"]):
            rows.append((query_id, doc_id, -float(place)))
    return make_run(rows)


def retrieval_by_scenario(
    benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], *, k: int = TOP
) -> pd.DataFrame:
    """Hit and true recall of the first k documents: retriever, scenario, metric, value,
    ci_low, ci_high, n, n_failed, left_out, in the scenarios' order; "random order" and
    "perfect order" too.

    Values are shares. "hit@5" is 1 where any ground-truth picture is among the five,
    which the paper prints as "Recall@5"; "recall@5" is the share of the ground truth
    that is. In "overall" scenarios weigh as their questions in the paper do, whatever
    their share here. Intervals are over questions that share pictures. `left_out` is
    what the benchmark was loaded with: what a query may not find.
    """
    scores = score_runs(benchmark, runs, cutoffs=(k,))
    scores = scores[scores["metric"].isin(_MEASURES)]
    told = {query_id: query.metadata for query_id, query in benchmark.queries.items()}
    scenario = scores["query_id"].map({each: told[each]["scenario"] for each in told})
    scores = scores.assign(scenario=scenario, metric=scores["metric"] + f"@{k}")
    whole = summarise(scores, ["retriever", "metric"], mix=papers_mix(benchmark))
    both = [whole.assign(scenario=OVERALL), summarise(scores, _KEY)]
    columns = [*_KEY, "value", "ci_low", "ci_high", "n", "n_failed"]
    left_out = next((each.get("left_out", "") for each in told.values()), "")
    table = pd.concat(both, ignore_index=True)[columns].assign(left_out=left_out)
    order = table["scenario"].map([OVERALL, *QUESTIONS].index)
    return table.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def printed_hits() -> pd.DataFrame:
    """Table 6 as shares, under the name of what it measures: retriever, scenario, metric
    ("hit@5"), value, n (questions).

    Its "Recall@5" is a hit against the five ground-truth pictures: counted in the rows'
    own `retrieved_images`, eight of CLIP's nine cells come out to the last digit.
    """
    table = published("mrag_bench", 6)
    n = table["scenario"].map({**QUESTIONS, OVERALL: sum(QUESTIONS.values())})
    table = table.assign(metric=f"hit@{TOP}", value=table["value"] / 100, n=n)
    return table[[*_KEY, "value", "n"]]
