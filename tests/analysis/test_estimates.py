"""Means over clusters, their differences, and means in another mix of parts: interval and p-value
are of one test, which agrees with other libraries, with matrices written out, with hand
calculations, and with the truth about as often as it says.
"""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from factories import judged_arms
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import linalg, stats
from timing.coverage import held

from vrag_kit.analysis import cluster_means, mean_scores, paired_differences, per_query
from vrag_kit.analysis.comparisons import ClusterDifference, cluster_difference
from vrag_kit.analysis.estimates import cluster_mean, estimate, table_mean
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale
from vrag_kit.papers import published, published_gains

ANY = Scale(-1e4, 1e4)
"""So wide that its ends do not matter."""
SIGNED = Scale(-1.0, 1.0)
VALUES = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, -1.0])
ROWS = st.lists(st.tuples(VALUES, st.sampled_from("abcdefgh")), min_size=1, max_size=12)
"""Values of queries, most of them 0, each with its cluster."""


@given(ROWS, ROWS)
@example([*zip([0.0, 0.0, 0.0, 1.0], "abca", strict=True)], [(-1.0, "a"), (-1.0, "b"), (1.0, "a")])
def test_p_is_below_5_percent_just_where_the_interval_leaves_0_out(one, other):
    rows = pd.DataFrame([*one, *other], columns=["value", "group"])
    values, first = rows["value"].to_numpy(), np.arange(len(rows)) < len(one)
    mean = cluster_mean(values, rows["group"], SIGNED)
    between = cluster_difference(values, rows["group"], first, SIGNED)
    for found, end in ((mean, 1), (between, 2)):
        low, high = found.interval()
        assert math.isnan(low) == math.isnan(found.p_value())
        if math.isnan(low):
            continue
        assert -end <= low <= found.value <= high <= end
        if min(abs(low), abs(high)) > 1e-6:
            assert (found.p_value() < 0.05) == (low > 0 or high < 0)


def test_the_interval_is_as_wide_as_cluster_robust_standard_errors_say():
    random, groups = np.random.default_rng(1), np.arange(120) // 3
    values = random.normal(0.5, 0.2, 40)[groups] + random.normal(0, 0.1, 120)
    ours = estimate(values, groups.astype(str), scale=ANY)
    fit = sm.OLS(values, np.ones(120)).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    low, high = fit.conf_int()[0]
    assert ours.value == pytest.approx(values.mean())
    assert ours.ci_high - ours.ci_low == pytest.approx(high - low, rel=0.01)


def test_with_as_many_queries_in_every_cluster_p_is_students_of_their_means():
    values = np.random.default_rng(1).normal(0.1, 0.5, (12, 3))
    ours = cluster_mean(values.ravel(), np.repeat(np.arange(12), 3), ANY)
    assert ours.p_value() == pytest.approx(stats.ttest_1samp(values.mean(axis=1), 0.0).pvalue)


def test_the_interval_of_a_share_is_wilsons_with_students_t():
    ours = estimate([1.0] * 3 + [0.0] * 17, [f"g{i}" for i in range(20)])
    t = stats.t.ppf(0.975, 19)
    for bound in (ours.ci_low, ours.ci_high):  # n − 1, since the variance is estimated
        assert abs(0.15 - bound) == pytest.approx(t * math.sqrt(bound * (1 - bound) / 19))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_interval_of_equal_values_is_binomial_over_species(value):
    ours = estimate([value] * 20, [f"s{i // 2}" for i in range(20)])
    exact = stats.binomtest(int(10 * value), 10).proportion_ci(method="exact")
    assert (ours.ci_low, ours.ci_high) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("clusters", [12, 48])
def test_intervals_hold_the_truth_about_as_often_as_they_say(clusters):
    share = held("moves of either sign, one in five", clusters, trials=400)
    # 95 % of 400 trials: 1.1 points of standard error, and a little is lost to sparse moves
    assert 0.92 <= share <= 0.995


def test_one_species_gives_no_interval_and_values_off_their_scale_are_refused():
    empty, single = estimate([math.nan], ["a"]), estimate([0.2, 0.4], ["a", "a"])
    assert (empty.n, empty.n_failed) == (0, 1)
    assert single.value == pytest.approx(0.3)
    assert np.isnan([empty.value, single.ci_low, single.ci_high]).all()
    with pytest.raises(VragError, match=r"values from 0\.2 to 3 are off their scale, from 0 to 1"):
        estimate([0.2, 3.0], ["a", "b"])


def difference(one: np.ndarray, other: np.ndarray, groups: list[str]) -> ClusterDifference:
    first = np.arange(len(one) + len(other)) < len(one)
    return cluster_difference(np.concatenate([one, other]), pd.Series(groups), first, SIGNED)


def test_a_difference_of_other_questions_is_near_welchs_t():
    draw = np.random.default_rng(0)
    one, other = draw.choice([-1.0, 0, 1], 70), draw.choice([-1.0, 0, 1], 120, p=[0.3, 0.3, 0.4])
    found = difference(one, other, [f"q{number}" for number in range(190)])
    welch = stats.ttest_ind(one, other, equal_var=False)
    assert found.value == pytest.approx(one.mean() - other.mean())
    assert found.interval() == pytest.approx(tuple(welch.confidence_interval()), abs=0.02)
    assert found.p_value() == pytest.approx(welch.pvalue, abs=0.03)


def test_conversations_in_both_count_for_what_they_share():
    draw = np.random.default_rng(1)
    one = draw.choice([-1.0, 0, 1], 80)
    other = np.where(draw.random(80) < 0.8, one, draw.choice([-1.0, 0, 1], 80))
    names = [f"c{number}" for number in range(160)]
    same, apart = difference(one, other, names[:80] * 2), difference(one, other, names)
    paired = stats.ttest_rel(one, other)
    assert same.correlation == pytest.approx(np.corrcoef(one, other)[0, 1])
    assert same.interval() == pytest.approx(tuple(paired.confidence_interval()), abs=0.02)
    assert np.diff(apart.interval()) > 1.5 * np.diff(same.interval())


def test_no_difference_anywhere_is_uncertain_in_both_directions():
    same = judged_arms({("m", "a", 1): [0.5] * 10, ("m", "b", 1): [0.5] * 10})
    row = paired_differences(per_query(same), arm="setting", by=["k"], baseline="b").iloc[0]
    none_of_ten = 1 - 0.025 ** (1 / 10)  # no success in ten trials, 97.5 %
    assert row["ci_high"] == pytest.approx(none_of_ten)
    assert (row["value"], row["ci_low"], row["p"]) == (0.0, -row["ci_high"], 1.0)


def test_filters_select_published_rows_and_gains_are_differences_of_published_means():
    arms = {"model": "GPT-4o", "setting": ["zero_shot", "gt_clue"]}
    means = published("visual_rag", 3, **arms)
    assert means["value"].tolist() == [53.74, 59.81]
    assert list(means) == ["k", "metric", "value", "n", "unit"]
    gains = published_gains("visual_rag", 3, ["zero_shot"], k=[0, 1], model="GPT-4o")
    (row,) = gains.query("setting == 'gt_clue'").itertuples()
    assert (row.value, row.baseline, row.unit) == (6.07, "zero_shot", "percent")
    with pytest.raises(VragError, match="visual_rag/table02"):
        published("visual_rag", table=99)


def table(**parts: list[float]) -> pd.DataFrame:
    """Values by part; every query is a group of its own."""
    rows = [(part, value) for part, values in parts.items() for value in values]
    frame = pd.DataFrame(rows, columns=["part", "value"])
    names = [f"q{number}" for number in range(len(frame))]
    return frame.assign(query_id=names, group=names, arm="all", score_min=-1e4, score_max=1e4)


def weights(**shares: float) -> pd.Series:
    return pd.Series(shares).rename_axis("part")


def by_matrices(rows: pd.DataFrame, shares: dict[str, float]) -> tuple[float, float]:
    """CR2 variance of Σ share · coefficient in the regression on parts, and its
    Satterthwaite degrees of freedom, as Bell and McCaffrey write them.
    """
    names = list(shares)
    x = np.array([[float(part == name) for name in names] for part in rows["part"]])
    y, inner = rows["value"].to_numpy(), np.linalg.inv(x.T @ x)
    rest = np.eye(len(x)) - x @ inner @ x.T
    contrast = x @ inner @ np.array([shares[name] for name in names])
    columns, variance = [], 0.0
    for _, part in rows.reset_index(drop=True).groupby("group"):
        at = part.index.to_numpy()
        root = linalg.fractional_matrix_power(rest[np.ix_(at, at)], -0.5).real
        weights = root @ contrast[at]
        variance += float(weights @ (rest @ y)[at]) ** 2
        columns.append(rest[:, at] @ weights)
    eigen = np.linalg.eigvalsh(np.array(columns) @ np.array(columns).T)
    return variance, float(eigen.sum() ** 2 / (eigen**2).sum())


@pytest.mark.parametrize("shares", [{"a": 1.0}, {"a": 0.5, "b": 0.3, "c": 0.2}])
@pytest.mark.parametrize("seed", range(3))
def test_the_variance_is_that_of_the_matrices(seed, shares):
    random = np.random.default_rng(seed)
    sizes = dict(zip(shares, (9, 14, 5), strict=False))
    rows = table(**{part: list(random.random(size)) for part, size in sizes.items()})
    rows["group"] = random.integers(0, 11, len(rows)).astype(str)
    found = table_mean(rows, ANY, weights(**shares))
    variance, freedom = by_matrices(rows, shares)
    assert found.variance == pytest.approx(variance)
    assert found.freedom == pytest.approx(freedom)


def test_what_no_question_shows_counts_by_the_thinnest_part():
    rows = table(a=[1.0] * 5, b=[1.0] * 50).assign(score_min=0.0, score_max=1.0)
    row = cluster_means(rows, ["arm"], weights=weights(a=0.5, b=0.5)).iloc[0]
    # 5 questions show half of the mix, as 10 would show all of it
    assert row["ci_low"] == pytest.approx(stats.binomtest(10, 10).proportion_ci().low)
    as_sampled = cluster_means(rows, ["arm"], weights=weights(a=1, b=10)).iloc[0]
    assert as_sampled["ci_low"] == pytest.approx(estimate([1.0] * 55, range(55)).ci_low)


def test_a_part_of_one_group_counts_by_its_distance_from_the_whole():
    rows = table(a=[0.0, 2.0], b=[4.0])
    found = table_mean(rows, ANY, weights(a=1, b=1))
    # mean 2.5; a: 0.25 · s² / 2 with s² = 2; b: (0.5 · (4 − 2.5))²
    assert found.variance == pytest.approx(0.25 + 0.75**2)


def test_failed_questions_leave_their_share_to_the_rest_of_their_part():
    rows = table(a=[0.0, 1.0, math.nan], b=[1.0, 1.0, math.nan]).assign(
        score_min=0.0, score_max=1.0
    )
    mix = weights(a=3, b=1)
    row = cluster_means(rows, ["arm"], weights=mix).iloc[0]
    assert row[["value", "n", "n_failed"]].tolist() == [0.75 * 0.5 + 0.25, 4, 2]
    lost = rows.assign(value=rows["value"].mask(rows["part"] == "b"))
    row = cluster_means(lost, ["arm"], weights=mix).iloc[0]
    assert row[["n", "n_failed"]].tolist() == [2, 4]
    assert row[["value", "ci_low", "ci_high"]].isna().all()


def test_a_part_without_a_share_is_refused():
    with pytest.raises(VragError, match="part 'b' has no share"):
        cluster_means(table(a=[1.0], b=[2.0]), ["arm"], weights=weights(a=1))


def test_accuracy_and_differences_are_mixed_alike():
    scores = {"alone": [0, 0, 1, 1, 1, 0], "shown": [1, 0, 1, 1, 1, math.nan]}
    answers = judged_arms(scores, ["setting"], part=list("aaabbb"), k=0)
    mix = weights(a=3, b=1)
    found = mean_scores(answers, weights=mix).query("metric == 'accuracy'").set_index("setting")
    assert found.loc["alone", "value"] == pytest.approx(0.75 / 3 + 0.25 * 2 / 3)
    bounds = found.loc["shown", ["bound_low", "value", "bound_high"]].astype(float)
    assert bounds.tolist() == pytest.approx([0.5 + 0.25 * 2 / 3, 0.75, 0.75])
    values = per_query(answers, by=["model", "setting", "part"])
    row = paired_differences(
        values, arm="setting", by=["model"], baseline="alone", weights=mix
    ).iloc[0]
    assert row["value"] == pytest.approx(0.75 / 3)  # a: one of three; b: none of two
    assert row[["n", "n_failed"]].tolist() == [5, 1]
    assert row["ci_low"] < 0 < row["ci_high"]


def test_a_failed_answer_is_left_out_of_the_mean_and_counted():
    judged = judged_arms({("m", "top_k", 1): [1.0, math.nan, 0.5]})
    (row,) = mean_scores(judged).query("metric == 'accuracy'").itertuples()
    assert (row.value, row.n, row.n_failed) == (0.75, 2, 1)
    assert per_query(judged)["value"].isna().tolist() == [False, True, False]
