"""What retrievers find of MRAG-Bench's examples, against counting by hand and Table 6."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from mrag_rows import four_questions
from scipy import stats

from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers import published
from vrag_kit.retrieval import make_run
from vrag_kit.types import Benchmark


@pytest.fixture
def benchmark() -> Benchmark:
    return four_questions()


def value(table: pd.DataFrame, retriever: str, scenario: str, metric: str) -> float:
    row = table[
        (table["retriever"] == retriever)
        & (table["scenario"] == scenario)
        & (table["metric"] == metric)
    ]
    return float(row["value"].item())


def test_the_rows_own_pictures_are_a_run_in_which_hit_and_recall_are_different_things(
    benchmark: Benchmark,
) -> None:
    """One of five ground-truth pictures is found in each row, in Incomplete one of one."""
    table = paper.retrieval.retrieval_by_scenario(
        benchmark, {"rows": paper.retrieval.shipped_run(benchmark)}
    )
    assert value(table, "rows", "angle", "hit@5") == 100
    assert value(table, "rows", "angle", "recall@5") == pytest.approx(20)
    assert value(table, "rows", "incomplete", "recall@5") == 100
    assert value(table, "perfect order", "overall", "recall@5") == 100
    assert list(table["scenario"].unique()) == [
        "overall",
        "angle",
        "partial",
        "incomplete",
        "others",
    ]


def test_inserted_gold_stands_first_for_the_set_share_of_the_questions() -> None:
    four = four_questions()
    own = {name: [f"no{name}-{place}" for place in range(5)] for name in four.queries}
    rows = [(name, doc, -float(place)) for name in own for place, doc in enumerate(own[name])]
    runs = paper.retrieval.runs_with_inserted_gold(four, make_run(rows), [0.5, 1.0], seed=3)
    assert list(runs) == ["rows", "rows, 50 % planted", "rows, 100 % planted"]
    planted: list[set[str]] = []
    for run in runs.values():
        found = {str(name): list(part["doc_id"]) for name, part in run.groupby("query_id")}
        planted.append({name for name in found if found[name] != own[name]})
        for name in planted[-1]:
            assert found[name] == [*four.relevant(name)[:2], *own[name]]
    assert [len(each) for each in planted] == [0, 2, 4]


PUBLISHED = published("mrag_bench", 6), published("mrag_bench", 7)


def test_the_papers_correlations_are_scipys_with_the_exact_p_of_24_orders() -> None:
    # the rows' own images and inserted gold are no retrievers: these would turn r round
    more = [f"rows{inserted}" for inserted in ("", ", 60 % planted")]
    tables = [
        pd.concat([table, *(table[table["retriever"] == "CLIP"].assign(retriever=n) for n in more)])
        for table in PUBLISHED
    ]
    table = paper.retrieval.retrieval_accuracy_correlations(*tables).set_index("scenario")
    both = PUBLISHED[0].merge(PUBLISHED[1], on=["retriever", "scenario"])
    for scenario, part in both.groupby("scenario"):
        x, y = part["value_x"].to_numpy(), part["value_y"].to_numpy()
        theirs, row = stats.pearsonr(x, y), table.loc[scenario]
        assert row["pearson"] == pytest.approx(theirs.statistic)
        interval = theirs.confidence_interval()
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high))
        assert row["spearman"] == pytest.approx(stats.spearmanr(x, y)[0])
        every = [abs(np.corrcoef(x, order)[0, 1]) for order in permutations(y)]
        assert row["p"] == pytest.approx(np.mean(np.array(every) >= abs(theirs.statistic) - 1e-9))
    assert table.loc["overall", "p"] == 3 / 24  # the paper's "strong 95%"
    assert set(table["n"]) == {4}
    scenarios = table["pearson"].drop(["overall", "within scenarios"])
    assert (scenarios.idxmin(), round(scenarios.min(), 2)) == ("incomplete", -0.97)


def scores(rows: list[tuple[str, str, float]], **columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["retriever", "scenario", "value"]).assign(**columns)


def test_within_scenarios_each_counts_from_its_own_mean() -> None:
    """Two scenarios on different levels, in each of which both scores rise alike."""
    found, right = [], []
    for scenario, low, high in (("overall", 0.0, 0.0), ("angle", 0.1, 0.8), ("scope", 0.6, 0.1)):
        for place, name in enumerate("abcd"):
            found.append((name, scenario, low + place / 20))
            right.append((name, scenario, high + place / 50))
    hits = scores(found, metric="hit@5")
    results = scores(right, metric="accuracy", level="scenario", model="m")
    table = paper.retrieval.retrieval_accuracy_correlations(hits, results)
    within = table.set_index("scenario").loc["within scenarios"]
    assert within["pearson"] == pytest.approx(1.0)
    assert within["p"] == within["p_least"] == pytest.approx(2 / 24)  # as found, and reversed
    assert np.isnan(within["ci_low"])
