"""Intervals of Visual-RAG's published means, and sentences of captions."""

from __future__ import annotations

import pytest
import scipy.stats
from scipy.stats import binomtest

from vrag_kit.papers import published
from vrag_kit.papers.visual_rag import reported
from vrag_kit.papers.visual_rag.figures import define


def test_a_published_mean_has_the_interval_of_a_share_of_its_queries():
    for row in reported(3).iloc[::9].to_dict("records"):
        # the interval of the two whole numbers of right answers next to the mean encloses its own
        right = row["value"] * row["n"] / 100
        low = binomtest(int(right), int(row["n"])).proportion_ci().low
        high = binomtest(int(right) + 1, int(row["n"])).proportion_ci().high
        assert 100 * low <= row["ci_low"] < row["value"] < row["ci_high"] <= 100 * high
    assert reported(2).query("metric == 'hit_count'")["ci_low"].isna().all()
    whole = binomtest(374, 374).proportion_ci()
    full = reported(8).query("value == 100")
    assert full["ci_low"].tolist() == pytest.approx([100 * whole.low] * len(full))


def test_only_what_the_paper_ran_five_times_has_an_interval_over_runs():
    three = reported(3)
    runs = published("visual_rag", 15, model="GPT-4o", k=5, statistic="run")
    exact = scipy.stats.t.interval(0.95, 4, runs["value"].mean(), scipy.stats.sem(runs["value"]))
    cell = three.set_index(["model", "setting", "k"]).loc[("GPT-4o", "one_in_k", 5)]
    assert (cell["ci_low_runs"], cell["ci_high_runs"]) == pytest.approx(exact)
    assert set(three.dropna(subset="ci_low_runs")["setting"]) == {"gt_clue", "one_in_k"}
    assert reported(8)["ci_low_runs"].isna().all()  # of other numbers, not of these runs


def test_terms_are_defined():
    assert define("clue", strata=["other"]) == "Clue: an image that shows the answer."
    assert define(strata=["in training data"]).startswith("In training data: questions")
    assert define(strata=["other"]) == ""
