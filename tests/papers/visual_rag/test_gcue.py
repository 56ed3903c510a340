"""gCUE against the paper's printed numbers, and its intervals against a slow inversion
of the test that defines them.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis import mean_scores, per_query
from vrag_kit.analysis.estimates import cluster_mean
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.gcue import fieller, gcue, published_gcue


@pytest.mark.parametrize(
    ("model", "k", "lam", "expected"),
    [
        (
            "Qwen2.5VL",
            3,
            0.5,
            (46.85 - 34.49) / (41.79 - 34.49),
        ),  # B = (38.90 + 30.08) / 2 = 34.49; 12.36 / 7.30 = 1.693
        ("GPT-4o", 3, 0.5, (48.95 - 34.355) / (59.81 - 34.355)),  # 14.595 / 25.455 = 0.573
        ("GPT-4o", 3, 1.0, (48.95 - 53.74) / (59.81 - 53.74)),  # negative: −4.79 / 6.07 = −0.789
        ("Claude", 3, 1.0, (48.05 - 54.28) / (56.79 - 54.28)),  # −6.23 / 2.51 = −2.482
        ("Qwen2.5VL", 15, 1.0, (49.57 - 38.90) / (41.79 - 38.90)),  # large: 10.67 / 2.89 = 3.692
        ("Qwen2.5VL", 15, 0.0, (49.57 - 30.08) / (41.79 - 30.08)),
    ],
)  # 19.49 / 11.71 = 1.664
def test_gcue_agrees_with_a_hand_calculation_from_table_3(
    model: str, k: int, lam: float, expected: float
) -> None:
    table = published_gcue(published("visual_rag", table=3)).set_index(["model", "k", "lambda"])
    assert table.loc[(model, k, lam), "value"] == pytest.approx(expected, rel=1e-9)


def of_means(a_k: float, a_gt: float, zero_shot: float, non_clue: float, lam: float) -> float:
    """gCUE of four published accuracies."""
    means = {"one_in_k": a_k, "gt_clue": a_gt, "zero_shot": zero_shot, "non_clue": non_clue}
    table = pd.DataFrame({"setting": list(means), "value": [100 * a for a in means.values()]})
    table = table.assign(model="m", k=3, n=374)
    return float(published_gcue(table, lambdas=[lam])["value"].item())


def test_gcue_has_its_marks_where_they_belong() -> None:
    assert of_means(0.6, 0.6, 0.3, 0.1, 0.5) == pytest.approx(1)  # nothing lost
    assert of_means(0.2, 0.6, 0.3, 0.1, 0.5) == pytest.approx(0)  # nothing left
    assert math.isnan(of_means(0.5, 0.2, 0.3, 0.1, 0.5))  # the clue does not help: undefined
    assert of_means(0.5, 0.2 + 1e-11, 0.3, 0.1, 0.5) > 1e9


def rejected(x: np.ndarray, y: np.ndarray, groups: list[str], ratio: float) -> bool:
    """Whether "mean(x − ratio · y) = 0" is rejected at 5 %, on a scale without ends."""
    return cluster_mean(x - ratio * y, groups, Scale(-1e4, 1e4)).p_value() < 0.05


@given(st.integers(0, 10**6), st.integers(3, 12), st.floats(-0.5, 0.5))
@settings(max_examples=60, deadline=None)
def test_fieller_holds_exactly_the_ratios_that_a_t_test_does_not_reject(
    seed: int, n_groups: int, shift: float
) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_groups)
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    y = rng.normal(shift, 0.4, len(groups))
    x = 0.5 * y + rng.normal(0.1, 0.4, len(groups))
    ratio = fieller(x, y, groups)
    if math.isnan(ratio.value):  # the denominator may be 0
        assert math.isnan(ratio.ci_low)
        assert not rejected(y, x, groups, 0.0)
        return
    for r in [*np.linspace(-8, 8, 41), ratio.value]:
        margin = min(abs(r - ratio.ci_low), abs(r - ratio.ci_high))
        assert rejected(x, y, groups, r) != (ratio.ci_low <= r <= ratio.ci_high) or margin < 1e-4


def test_a_denominator_that_may_be_0_gives_no_ratio() -> None:
    for ratio in (
        fieller([0.3, 0.4, 0.5, 0.4], [0.2, -0.2, 0.1, -0.05], list("abcd")),
        fieller([1.0, 0.0], [0.5, -0.5], list("ab")),
        fieller([1.0, 1.0], [0.5, 0.5], ["a", "a"]),  # one cluster tells nothing
        fieller([], [], []),
    ):
        assert np.isnan([ratio.value, ratio.ci_low, ratio.ci_high]).all()


def judged(scores: dict[tuple[str, int], list[float]], times: int = 1) -> pd.DataFrame:
    """Scores of queries a, b, c, … in each arm, `times` over, each query a species."""
    return pd.DataFrame(
        [
            ("m", setting, k, draw, f"{query_id}{time}", f"s of {query_id}{time}", score, 0.0)
            for (setting, k), values in scores.items()
            for draw in (0, 1)
            for time in range(times)
            for query_id, score in zip("abcdefghij", values, strict=False)
        ],
        columns=["model", "setting", "k", "draw", "query_id", "group", "score", "abstained"],
    )


ARMS = {
    ("zero_shot", 0): [0, 0.5, 0.5],
    ("non_clue", 1): [0, 0, 0.5],
    ("gt_clue", 1): [1, 1, 0.5],
    ("one_in_k", 3): [1, 0.5, 1],
}


def test_gcue_of_answers_agrees_with_a_case_worked_by_hand() -> None:
    row = gcue(judged(ARMS, times=4), lambdas=[0.5]).iloc[0]
    # A_Z = 1/3, A_NC = 1/6, A_GT = 5/6, A_3 = 5/6: B = 1/4, (5/6 − 1/4) / (5/6 − 1/4) = 1
    assert row[["a_zero_shot", "a_non_clue", "a_gt", "a_k"]].tolist() == pytest.approx(
        [1 / 3, 1 / 6, 5 / 6, 5 / 6]
    )
    assert (row["value"], row["denominator"], row["n"]) == (
        pytest.approx(1),
        pytest.approx(7 / 12),
        12,
    )
    assert row["interval"] == f"[{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def test_gcue_uses_only_queries_with_a_verdict_in_every_arm() -> None:
    table = judged({**ARMS, ("non_clue", 1): [0, 0, math.nan]}, times=4)
    row = gcue(table, lambdas=[1.0]).iloc[0]
    # without c: A_Z = 1/4, A_GT = 1, A_3 = 3/4: (3/4 − 1/4) / (1 − 1/4) = 2/3
    assert (row["value"], row["n"], row["n_failed"]) == (pytest.approx(2 / 3), 8, 8)


def test_where_a_clue_does_not_help_there_is_no_ratio_and_the_table_says_so() -> None:
    costs = {**ARMS, ("zero_shot", 0): [1, 1, 1], ("non_clue", 1): [1, 1, 1]}  # told before
    row = gcue(judged(costs, times=4), lambdas=[0.5]).iloc[0]
    assert np.isnan([row["value"], row["ci_low"], row["ci_high"], row["half_width"]]).all()
    assert row["interval"] == "clue does not help"
    assert row["denominator_low"] < row["denominator"] == pytest.approx(-1 / 6)
    assert row["denominator_high"] < 0


def ten(a_k: int, a_gt: int, zero_shot: int, non_clue: int) -> pd.DataFrame:
    """Ten questions of ten groups, of which each arm answers the first so many."""
    rights = {("one_in_k", 3): a_k, ("gt_clue", 1): a_gt}
    rights |= {("zero_shot", 0): zero_shot, ("non_clue", 1): non_clue}
    scores = {arm: [1.0] * right + [0.0] * (10 - right) for arm, right in rights.items()}
    return judged(scores, times=1)


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ((0, 0, 0, 0), "all accuracies are 0"),
        ((1, 0, 0, 0), "clue may not help"),  # A_GT − B = 0, with 0 lost or won of 10
        ((0, 2, 3, 3), "clue may not help"),  # −0.1: one of ten, t = −1, p = 0.34
        ((0, 0, 9, 9), "clue does not help"),  # −0.9: t(9) = −0.9 / 0.1 = −9
        ((0, 0, 8, 8), "clue does not help"),  # −0.8: t(9) = −0.8 / 0.133 = −6
    ],
)
def test_a_clue_does_not_help_only_where_the_interval_of_its_benefit_says_so(
    arms: tuple[int, int, int, int], said: str
) -> None:
    row = gcue(ten(*arms), lambdas=[0.5]).iloc[0]
    assert row["denominator"] == pytest.approx((arms[1] - (arms[2] + arms[3]) / 2) / 10)
    assert row["interval"] == said
    assert (row["denominator_high"] <= 0) == ("does not help" in said)


def test_a_benefit_that_may_be_0_is_said_to_be_open() -> None:
    half = {**ARMS, ("gt_clue", 1): [1, 0, 0.5]}  # A_GT − B is 1, −1/4, 0
    row = gcue(judged(half, times=3), lambdas=[0.5]).iloc[0]
    assert math.isnan(row["value"])
    assert (row["interval"], row["denominator_low"] < 0) == ("clue may not help", True)


@pytest.mark.parametrize("groups", [1, 2, 3, 5, 6])
def test_groups_too_few_for_any_benefit_are_the_reason_and_no_doubt_of_the_clue(
    groups: int,
) -> None:
    """Up to five groups, even 0 % without a clue and 100 % with it may be chance."""
    arms = {("zero_shot", 0): [0], ("non_clue", 1): [0], ("gt_clue", 1): [1]}
    row = gcue(judged({**arms, ("one_in_k", 3): [1]}, times=groups), lambdas=[0.5]).iloc[0]
    few = f"too few groups ({groups})"
    assert row["denominator"] == 1
    assert (few in row["interval"], math.isnan(row["value"])) == (groups < 6, groups < 6)
    if groups == 3:
        assert few in gcue(judged(ARMS), lambdas=[0.5]).iloc[0]["interval"]  # 1, 3/4, 0


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 4), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_a_ratio_that_is_told_has_an_interval_with_two_ends(rows: list[tuple[float, ...]]) -> None:
    one = [
        judged(dict(zip(ARMS, [[score] for score in row], strict=True))).assign(
            query_id=f"q{n}", group=f"g{n}"
        )
        for n, row in enumerate(rows)
    ]
    for row in gcue(pd.concat(one)).itertuples():
        told = row.denominator_low > 0
        assert told == (row.ci_low <= row.value <= row.ci_high)
        assert told == math.isfinite(row.half_width)


@pytest.mark.parametrize("left", [0.0, 0.5, 1.0])
def test_alike_queries_leave_open_what_unseen_ones_would_do(left: float) -> None:
    """The same share is left everywhere; a share p of unseen queries would go unnoticed
    among 30 with the probability (1 − p)^30, and may have any scores.
    """
    arms = {("zero_shot", 0): 0.0, ("non_clue", 1): 0.0, ("gt_clue", 1): 1.0}
    arms |= {("one_in_k", 3): left}
    row = gcue(judged({arm: [score] for arm, score in arms.items()}, times=30)).iloc[0]
    p = 1 - 0.025 ** (1 / 30)
    assert row["value"] == pytest.approx(left)
    scores = (0.0, 1.0)
    for a_k, a_gt, baseline in product(scores, scores, scores):
        gained = (1 - p) * left + p * (a_k - baseline)
        possible = (1 - p) * 1 + p * (a_gt - baseline)
        assert row["ci_low"] <= gained / possible <= row["ci_high"]
    assert np.isnan(fieller([left] * 30, [1.0] * 30, [str(i) for i in range(30)]).ci_low)


def test_gcue_without_an_arm_names_it() -> None:
    with pytest.raises(VragError, match=r"of m needs .*'non_clue'.*; found zero_shot, gt_clue"):
        gcue(judged({arm: values for arm, values in ARMS.items() if arm[0] != "non_clue"}))


def test_gcue_without_distractors_says_so_instead_of_an_empty_table() -> None:
    with pytest.raises(VragError, match="needs the setting 'one_in_k'"):
        gcue(judged({arm: values for arm, values in ARMS.items() if arm[0] != "one_in_k"}))


def test_a_denominator_that_is_only_rounding_gives_no_ratio() -> None:
    assert math.isnan(of_means(0.5, 0.3, 0.1 + 0.2, 0.9, 1.0))  # not 0.3 in binary
    row = gcue(
        judged({**ARMS, ("gt_clue", 1): [0.1, 0.2, 0.3], ("zero_shot", 0): [0.3, 0.2, 0.1]}),
        lambdas=[1.0],
    ).iloc[0]
    assert math.isnan(row["value"])
    assert row["interval"] == "too few groups (3) to say whether a clue helps"


def test_accuracy_keeps_draws_together_and_counts_failures_apart() -> None:
    table = judged(ARMS)
    table.loc[
        (table["setting"] == "gt_clue") & (table["query_id"] == "a0") & (table["draw"] == 1),
        ["score", "abstained"],
    ] = math.nan
    table.loc[
        (table["setting"] == "gt_clue") & (table["query_id"] == "b0"), ["score", "abstained"]
    ] = math.nan
    row = (
        mean_scores(table.assign(status="ok"))
        .query("setting == 'gt_clue' and metric == 'accuracy'")
        .iloc[0]
    )
    assert (row["value"], row["n"], row["n_failed"]) == (
        0.75,
        2,
        3,
    )  # a: 1 (one draw), c: 0.5; b has no verdict
    assert per_query(table).query("setting == 'gt_clue' and query_id == 'b0'")["value"].isna().all()
