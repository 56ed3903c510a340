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

FOUR = four_questions()
PUBLISHED = published("mrag_bench", 6), published("mrag_bench", 7)


def test_hit_and_recall_are_different_things_and_the_rows_images_are_a_run():
    """One of five ground-truth images is found in each row, in Incomplete one of one."""
    runs = {"rows": paper.settings.shipped_run(FOUR)}
    table = paper.retrieval.retrieval_by_scenario(FOUR, runs)
    assert list(table["scenario"].unique()) == [
        *("overall", "angle", "partial", "incomplete", "others"),
    ]
    found = table.set_index(["retriever", "scenario", "metric"])["value"]
    assert found["rows", "angle", "hit@5"] == 100
    assert found["rows", "angle", "recall@5"] == pytest.approx(20)
    assert found["rows", "incomplete", "recall@5"] == 100
    assert found["perfect order", "overall", "recall@5"] == 100


def test_inserted_gold_stands_first_for_the_set_share_of_the_questions():
    own = {name: [f"no{name}-{place}" for place in range(5)] for name in FOUR.queries}
    run = paper.settings.ranked_run(own)
    runs = paper.retrieval.runs_with_inserted_gold(FOUR, run, [0.5, 1.0], seed=3)
    changed = {}
    for title, each in runs.items():
        found = each.groupby("query_id")["doc_id"].agg(list)
        planted = [name for name in own if found[name] == [*FOUR.relevant(name)[:2], *own[name]]]
        assert all(found[name] == own[name] for name in set(own) - set(planted))
        changed[title] = len(planted)
    assert changed == {"rows": 0, "rows, 50 % planted": 2, "rows, 100 % planted": 4}


def test_the_papers_correlations_are_scipys_with_the_exact_p_of_24_orders():
    # the rows' own images and inserted gold are no retrievers: these would turn r round
    tables = []
    for table in PUBLISHED:
        clip = table[table["retriever"] == "CLIP"]
        more = [clip.assign(retriever=name) for name in ("rows", "rows, 60 % planted")]
        tables.append(pd.concat([table, *more]))
    table = paper.retrieval.retrieval_accuracy_correlations(*tables).set_index("scenario")
    both = PUBLISHED[0].merge(PUBLISHED[1], on=["retriever", "scenario"])
    for scenario, part in both.groupby("scenario"):
        x, y = part["value_x"].to_numpy(), part["value_y"].to_numpy()
        theirs, row = stats.pearsonr(x, y), table.loc[scenario]
        numbers = [theirs.statistic, *theirs.confidence_interval(), stats.spearmanr(x, y)[0]]
        assert row[["pearson", "ci_low", "ci_high", "spearman"]].tolist() == pytest.approx(numbers)
        every = [abs(np.corrcoef(x, order)[0, 1]) for order in permutations(y)]
        assert row["p"] == pytest.approx(np.mean(np.array(every) >= abs(theirs.statistic) - 1e-9))
    assert table.loc["overall", "p"] == 3 / 24  # the paper's "strong 95%"
    assert set(table["n"]) == {4}
    scenarios = table["pearson"].drop(["overall", "within scenarios"])
    assert (scenarios.idxmin(), round(scenarios.min(), 2)) == ("incomplete", -0.97)


def test_within_scenarios_each_counts_from_its_own_mean():
    """Two scenarios on different levels, in each of which both scores rise alike."""
    scenarios = pd.DataFrame({"scenario": ["overall", "angle", "scope"], "level": "scenario"})
    scenarios = scenarios.assign(low=[0.0, 0.1, 0.6], high=[0.0, 0.8, 0.1], model="m")
    table = scenarios.merge(pd.DataFrame({"retriever": list("abcd"), "place": range(4)}), "cross")
    hits = table.assign(metric="hit@5", value=table["low"] + table["place"] / 20)
    results = table.assign(metric="accuracy", value=table["high"] + table["place"] / 50)
    found = paper.retrieval.retrieval_accuracy_correlations(hits, results).set_index("scenario")
    within = found.loc["within scenarios"]
    assert within["pearson"] == pytest.approx(1.0)
    assert within["p"] == within["p_least"] == pytest.approx(2 / 24)  # as found, and reversed
    assert np.isnan(within["ci_low"])
