"""Intervals and paired tests agree with other libraries and with hand calculations;
published numbers are as printed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from factories import judged_arms
from scipy import stats

from vrag_kit.analysis import paired_differences, per_query
from vrag_kit.analysis.estimates import estimate
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale
from vrag_kit.papers import published, published_gains

ANY = Scale(-1e4, 1e4)
"""So wide that its ends do not matter."""


def test_the_interval_is_as_wide_as_cluster_robust_standard_errors_say() -> None:
    random, groups = np.random.default_rng(1), np.arange(120) // 3
    values = random.normal(0.5, 0.2, 40)[groups] + random.normal(0, 0.1, 120)
    ours = estimate(values, groups.astype(str), scale=ANY)
    fit = sm.OLS(values, np.ones(120)).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    low, high = fit.conf_int()[0]
    assert ours.value == pytest.approx(values.mean())
    assert ours.ci_high - ours.ci_low == pytest.approx(high - low, rel=0.01)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_interval_of_equal_values_is_binomial_over_species(value: float) -> None:
    ours = estimate([value] * 20, [f"s{i // 2}" for i in range(20)])
    exact = stats.binomtest(int(10 * value), 10).proportion_ci(method="exact")
    assert (ours.ci_low, ours.ci_high) == pytest.approx((exact.low, exact.high))


def test_no_values_and_one_species_give_no_interval() -> None:
    empty, single = estimate([math.nan], ["a"]), estimate([0.2, 0.4], ["a", "a"])
    assert (empty.n, empty.n_failed) == (0, 1)
    assert math.isnan(empty.value)
    assert single.value == pytest.approx(0.3)
    assert math.isnan(single.ci_low)


def test_no_difference_anywhere_is_uncertain_in_both_directions() -> None:
    same = judged_arms({("m", "a", 1): [0.5] * 10, ("m", "b", 1): [0.5] * 10})
    values = per_query(same)
    row = paired_differences(values, arm="setting", by=["k"], baseline="b").iloc[0]
    none_of_ten = 1 - 0.025 ** (1 / 10)  # no success in ten trials, 97.5 %
    assert row["ci_high"] == pytest.approx(none_of_ten)
    assert (row["value"], row["ci_low"], row["p"]) == (0.0, -row["ci_high"], 1.0)


def test_filters_select_published_rows_and_gains_are_differences_of_published_means() -> None:
    arms = {"model": "GPT-4o", "setting": ["zero_shot", "gt_clue"]}
    means = published("visual_rag", 3, **arms)
    assert means["value"].tolist() == [53.74, 59.81]
    assert list(means) == ["k", "metric", "value", "n", "unit"]
    gains = published_gains("visual_rag", 3, ["zero_shot"], k=[0, 1], model="GPT-4o")
    (row,) = gains.query("setting == 'gt_clue'").itertuples()
    assert (row.value, row.baseline, row.unit) == (6.07, "zero_shot", "percent")


def test_an_unknown_published_table_is_refused_with_the_list() -> None:
    with pytest.raises(VragError, match="visual_rag/table02"):
        published("visual_rag", table=99)
