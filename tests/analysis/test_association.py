"""Rank correlations and kappa agree with SciPy and scikit-learn; intervals are over groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from vrag_kit.analysis.agreement import association


def test_measures_agree_with_scipy_and_scikit_learn_over_the_pairs_that_have_both() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, 40) / 4  # with many ties
    y = np.round(np.clip(x + rng.normal(0, 0.4, 40), 0, 1) * 2) / 2
    gaps, groups = np.where(np.arange(40) % 10 == 0, np.nan, x), [f"s{n // 5}" for n in range(40)]
    known = np.isfinite(gaps)
    expected = {
        "spearman": stats.spearmanr(x[known], y[known]).statistic,
        "kendall": stats.kendalltau(x[known], y[known]).statistic,
        "kappa": cohen_kappa_score((4 * x[known]).astype(int), (4 * y[known]).astype(int)),
    }
    for measure, value in expected.items():
        found = association(gaps, y, groups, measure=measure)
        assert found.value == pytest.approx(value)
        assert found.ci_low < found.value < found.ci_high
        assert (found.n, found.n_failed) == (36, 4)


def test_what_does_not_vary_has_no_correlation_and_what_does_not_differ_no_interval() -> None:
    constant = association([1, 1, 1], [0, 1, 0], list("abc"), measure="spearman")
    assert math.isnan(constant.value)
    perfect = association([0, 1, 0, 1], [0, 1, 0, 1], list("abcd"), measure="kappa")
    assert perfect.value == 1
    assert math.isnan(perfect.ci_low)
