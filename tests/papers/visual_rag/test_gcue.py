"""gCUE against the paper's printed numbers, and its intervals against a slow inversion
of the test that defines them.
"""

from __future__ import annotations

import math
from itertools import product

import factories
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis.estimates import cluster_mean
from vrag_kit.judging import Scale
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.gcue import fieller, gcue, published_gcue


def test_gcue_agrees_with_hand_calculations_from_table_3():
    table = published_gcue(published("visual_rag", table=3)).set_index(["model", "k", "lambda"])
    assert len(table) == 3 * 46
    for cell, expected in {
        # B = (38.90 + 30.08) / 2 = 34.49; 12.36 / 7.30 = 1.693
        ("Qwen2.5VL", 3, 0.5): (46.85 - 34.49) / (41.79 - 34.49),
        ("GPT-4o", 3, 0.5): (48.95 - 34.355) / (59.81 - 34.355),
        ("GPT-4o", 3, 1.0): (48.95 - 53.74) / (59.81 - 53.74),  # −4.79 / 6.07 = −0.789
        ("Qwen2.5VL", 15, 1.0): (49.57 - 38.90) / (41.79 - 38.90),  # large: 3.692
        ("Qwen2.5VL", 15, 0.0): (49.57 - 30.08) / (41.79 - 30.08),
    }.items():
        assert table.loc[cell, "value"] == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 10**6), st.integers(3, 12), st.floats(-0.5, 0.5))
@settings(max_examples=25, deadline=None)
def test_fieller_holds_exactly_the_ratios_that_a_t_test_does_not_reject(seed, n_groups, shift):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_groups)
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    y = rng.normal(shift, 0.4, len(groups))
    x = 0.5 * y + rng.normal(0.1, 0.4, len(groups))

    def rejected(r: float) -> bool:
        """Whether "mean(x − r y) = 0" is rejected at 5 %, on a scale without ends."""
        return cluster_mean(x - r * y, groups, Scale(-1e4, 1e4)).p_value() < 0.05

    ratio = fieller(x, y, groups)
    if math.isnan(ratio.value):  # the denominator may be 0
        assert math.isnan(ratio.ci_low)
        assert not cluster_mean(y, groups, Scale(-1e4, 1e4)).p_value() < 0.05
        return
    for r in [*np.linspace(-8, 8, 21), ratio.value]:
        margin = min(abs(r - ratio.ci_low), abs(r - ratio.ci_high))
        assert rejected(r) != (ratio.ci_low <= r <= ratio.ci_high) or margin < 1e-4


def test_a_denominator_that_may_be_0_gives_no_ratio():
    for ratio in (
        fieller([0.3, 0.4, 0.5, 0.4], [0.2, -0.2, 0.1, -0.05], list("abcd")),
        fieller([1.0, 1.0], [0.5, 0.5], ["a", "a"]),  # one cluster tells nothing
        fieller([], [], []),
    ):
        assert np.isnan([ratio.value, ratio.ci_low, ratio.ci_high]).all()


def judged(scores: dict[tuple[str, int], list[float]], times: int = 1) -> pd.DataFrame:
    """The scores of each arm, `times` over; each query is its own species."""
    arms = {arm: values * times for arm, values in scores.items()}
    return factories.judged_arms(arms, ["setting", "k"])


ARMS = {
    ("zero_shot", 0): [0, 0.5, 0.5],
    ("non_clue", 1): [0, 0, 0.5],
    ("gt_clue", 1): [1, 1, 0.5],
    ("one_in_k", 3): [1, 0.5, 1],
}


def test_gcue_of_answers_agrees_with_a_case_worked_by_hand():
    row = gcue(judged(ARMS, times=4), lambdas=[0.5]).iloc[0]
    # A_Z = 1/3, A_NC = 1/6, A_GT = 5/6, A_3 = 5/6: B = 1/4, (5/6 − 1/4) / (5/6 − 1/4) = 1
    arms = row[["a_zero_shot", "a_non_clue", "a_gt", "a_k"]].tolist()
    assert arms == pytest.approx([1 / 3, 1 / 6, 5 / 6, 5 / 6])
    assert row[["value", "denominator", "n"]].tolist() == pytest.approx([1, 7 / 12, 12])
    assert row["interval"] == f"[{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def test_gcue_uses_only_queries_with_a_verdict_in_every_arm():
    table = judged({**ARMS, ("non_clue", 1): [0, 0, math.nan]}, times=4)
    row = gcue(table, lambdas=[1.0]).iloc[0]
    # without c: A_Z = 1/4, A_GT = 1, A_3 = 3/4: (3/4 − 1/4) / (1 − 1/4) = 2/3
    assert (row["value"], row["n"], row["n_failed"]) == (pytest.approx(2 / 3), 8, 4)


@pytest.mark.parametrize(
    ("a_gt", "baseline", "words"),
    [
        (2, 3, "clue may not help"),  # −0.1: one of ten, t = −1, p = 0.34
        (0, 8, "clue does not help"),  # −0.8: t(9) = −0.8 / 0.133 = −6
    ],
)
def test_a_clue_does_not_help_only_where_the_interval_of_its_benefit_says_so(a_gt, baseline, words):
    """Ten questions of ten groups, of which each arm answers the first so many."""
    rights = {("one_in_k", 3): 0, ("gt_clue", 1): a_gt}
    rights |= {("zero_shot", 0): baseline, ("non_clue", 1): baseline}
    table = judged({arm: [1.0] * n + [0.0] * (10 - n) for arm, n in rights.items()})
    row = gcue(table, lambdas=[0.5]).iloc[0]
    assert row["denominator"] == pytest.approx((a_gt - baseline) / 10)
    assert np.isnan([row["value"], row["ci_low"], row["ci_high"], row["half_width"]]).all()
    assert row["interval"] == words
    assert (row["denominator_high"] <= 0) == ("does not help" in words)


def test_a_benefit_that_may_be_0_is_said_to_be_open():
    half = judged({**ARMS, ("gt_clue", 1): [1, 0, 0.5]}, times=3)  # A_GT − B is 1, −1/4, 0
    row = gcue(half, lambdas=[0.5]).iloc[0]
    assert math.isnan(row["value"])
    assert (row["interval"], row["denominator_low"] < 0) == ("clue may not help", True)


@pytest.mark.parametrize("left", [0.0, 0.5, 1.0])
def test_alike_queries_leave_open_what_unseen_ones_would_do(left):
    """The same share is left everywhere; a share p of unseen queries would go unnoticed
    among 30 with the probability (1 − p)^30, and may have any scores.
    """
    arms = {("zero_shot", 0): 0.0, ("non_clue", 1): 0.0, ("gt_clue", 1): 1.0}
    arms |= {("one_in_k", 3): left}
    row = gcue(judged({arm: [score] for arm, score in arms.items()}, times=30)).iloc[0]
    p = 1 - 0.025 ** (1 / 30)
    assert row["value"] == pytest.approx(left)
    for a_k, a_gt, baseline in product((0.0, 1.0), repeat=3):
        gained = (1 - p) * left + p * (a_k - baseline)
        possible = (1 - p) * 1 + p * (a_gt - baseline)
        assert row["ci_low"] <= gained / possible <= row["ci_high"]


@pytest.mark.parametrize("missing", ["non_clue", "one_in_k"])
def test_gcue_without_an_arm_names_it(missing):
    with pytest.raises(KeyError, match=missing):
        gcue(judged({arm: values for arm, values in ARMS.items() if arm[0] != missing}))
