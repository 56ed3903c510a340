"""Rank correlations and kappa agree with SciPy and scikit-learn; intervals are over groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from vrag_kit.analysis.agreement import association
from vrag_kit.errors import VragError


def ratings(seed: int, n: int = 40, groups: int = 8) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Two columns with many ties, correlated within groups."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, n) / 4
    return (
        x,
        np.round(np.clip(x + rng.normal(0, 0.4, n), 0, 1) * 2) / 2,
        [f"s{i}" for i in rng.integers(0, groups, n)],
    )


@pytest.mark.parametrize("seed", range(8))
def test_measures_agree_with_scipy_and_scikit_learn(seed: int) -> None:
    x, y, groups = ratings(seed)
    assert association(x, y, groups, measure="spearman").value == pytest.approx(
        stats.spearmanr(x, y).statistic
    )
    assert association(x, y, groups, measure="kendall").value == pytest.approx(
        stats.kendalltau(x, y).statistic
    )
    assert association(x, y, groups, measure="kappa").value == pytest.approx(
        cohen_kappa_score((4 * x).astype(int), (4 * y).astype(int))
    )


@pytest.mark.slow
def test_the_interval_is_that_of_a_slow_bootstrap_over_groups() -> None:
    x, y, groups = ratings(3)
    names = np.unique(groups)
    draws = np.random.default_rng(5).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=1000
    )
    members = [np.flatnonzero(np.array(groups) == name) for name in names]
    slow = [
        stats.spearmanr(x[rows], y[rows]).statistic
        for times in draws
        for rows in [np.concatenate([np.tile(m, t) for m, t in zip(members, times, strict=True)])]
    ]
    ours = association(x, y, groups, measure="spearman", seed=5)
    assert (ours.ci_low, ours.ci_high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])))
    assert (ours.n, ours.n_failed) == (40, 0)


def test_pairs_without_a_value_are_left_out_and_counted() -> None:
    x, y, groups = ratings(1)
    gaps = np.where(np.arange(40) % 10 == 0, np.nan, x)
    ours, without = association(gaps, y, groups, measure="kendall"), np.isfinite(gaps)
    assert ours.value == pytest.approx(stats.kendalltau(x[without], y[without]).statistic)
    assert (ours.n, ours.n_failed) == (36, 4)


def test_what_does_not_vary_has_no_correlation_and_what_does_not_differ_no_interval() -> None:
    constant, empty = (
        association([1, 1, 1], [0, 1, 0], list("abc"), measure="spearman"),
        association([np.nan], [1.0], ["a"], measure="kappa"),
    )
    assert math.isnan(constant.value)
    assert (math.isnan(empty.value), empty.n, empty.n_failed) == (True, 0, 1)
    perfect = association([0, 1, 0, 1], [0, 1, 0, 1], list("abcd"), measure="kappa")
    assert perfect.value == 1
    assert math.isnan(perfect.ci_low)
    assert math.isnan(
        association([0, 1, 1], [1, 1, 0], ["a"] * 3, measure="kappa").ci_low
    )  # one group tells nothing


def test_an_unknown_measure_and_uneven_lengths_are_refused() -> None:
    with pytest.raises(VragError, match="'pearson'; expected one of kappa, spearman, kendall"):
        association([1.0], [1.0], ["a"], measure="pearson")
    with pytest.raises(VragError, match="2 and 1 values but 2 groups"):
        association([1.0, 2.0], [1.0], ["a", "b"], measure="kappa")
