"""Intervals of Visual-RAG's published means."""

from __future__ import annotations

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from vrag_kit.papers import published, visual_rag
from vrag_kit.papers.visual_rag.abstention import with_uncertainty

PAPER = visual_rag.abstention.with_uncertainty(published("visual_rag", table=3))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 500), st.floats(0, 1))
def test_a_printed_mean_is_as_doubtful_as_a_binomial_one(n: int, share: float) -> None:
    right = round(share * n)
    table = PAPER.head(1).assign(value=100 * right / n, n=n, model="m")
    found = with_uncertainty(table).iloc[0]
    exact = binomtest(right, n).proportion_ci()
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((100 * exact.low, 100 * exact.high))


def test_only_what_the_paper_ran_five_times_has_an_interval_over_runs() -> None:
    known = PAPER.set_index(["model", "setting", "k"])
    runs = published("visual_rag", 15, model="GPT-4o", k=5, statistic="run")
    exact = scipy.stats.t.interval(0.95, 4, runs["value"].mean(), scipy.stats.sem(runs["value"]))
    cell = known.loc[("GPT-4o", "one_in_k", 5)]
    assert (cell["ci_low_runs"], cell["ci_high_runs"]) == pytest.approx(exact)
    assert set(PAPER.dropna(subset="ci_low_runs")["setting"]) == {"gt_clue", "one_in_k"}
    abstention = visual_rag.abstention.with_uncertainty(
        published("visual_rag", table=8)
    )  # of other numbers, not of these runs
    assert abstention["ci_low_runs"].isna().all()
