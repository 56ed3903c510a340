"""How well retrievers find the examples of MRAG-Bench, by scenario (Table 6), under the
names that the measures have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import summarise
from vrag_kit.order import ordered
from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.results import OVERALL, papers_mix
from vrag_kit.papers.mrag_bench.settings import TOP
from vrag_kit.papers.published import published
from vrag_kit.retrieval import make_run, score_runs
from vrag_kit.types import Benchmark

_MEASURES = ("hit", "recall")
_KEY = ["retriever", "scenario", "metric"]
_ROWS = "rows"
_PLANTED = " planted"
PLANTED = 2
"""Ground-truth pictures that `planted_runs` plant: the paper's CLIP shows 1.9 of five where
it shows any.
"""


def rows_run(benchmark: Benchmark) -> pd.DataFrame:
    """What the rows themselves hold as retrieved, best first: the paper's CLIP, as a run."""
    rows: list[tuple[str, str, float]] = []
    for query_id, query in benchmark.queries.items():
        for place, doc_id in enumerate(query.metadata["retrieved"]):
            rows.append((query_id, doc_id, -float(place)))
    return make_run(rows)


def planted_runs(
    benchmark: Benchmark, run: pd.DataFrame, shares: Sequence[float], *, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """ "rows" → the run of `rows_run`, and for each share "rows, 50 % planted": the run
    with the first `PLANTED` ground-truth pictures above its own for that share of the
    queries, which `seed` chooses; those of a smaller share are among them. An oracle
    whose hit rate is set, not a retriever.
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


def is_planted(retrievers: pd.Series) -> pd.Series:
    """Whether names of rankings are those of `planted_runs`, which are no retrievers."""
    names = retrievers.astype(str).str
    return names.startswith(f"{_ROWS}, ") & names.endswith(_PLANTED)


def is_listed(retrievers: pd.Series) -> pd.Series:
    """Whether names of rankings are those of listed retrievers: neither planted, nor the
    rows' own, which on the paper's data are CLIP's and would count it twice.
    """
    return ~is_planted(retrievers) & (retrievers.astype(str) != _ROWS)


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
