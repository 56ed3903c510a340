"""Differences of means of other queries: near Welch's t where clusters are apart, near the
paired t where they are the same, and never p and interval against each other.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from vrag_kit.analysis.comparisons import ClusterDifference, cluster_difference
from vrag_kit.judging.scale import Scale

TRUTH = Scale(-1.0, 1.0)


def difference(one: np.ndarray, other: np.ndarray, groups: list[str]) -> ClusterDifference:
    first = np.arange(len(one) + len(other)) < len(one)
    return cluster_difference(np.concatenate([one, other]), pd.Series(groups), first, TRUTH)


def test_of_questions_alone_it_is_near_welchs_t() -> None:
    draw = np.random.default_rng(0)
    one, other = draw.choice([-1.0, 0, 1], 70), draw.choice([-1.0, 0, 1], 120, p=[0.3, 0.3, 0.4])
    found = difference(one, other, [f"q{number}" for number in range(190)])
    welch = stats.ttest_ind(one, other, equal_var=False)
    assert found.value == pytest.approx(one.mean() - other.mean())
    assert found.correlation == 0
    assert found.interval() == pytest.approx(tuple(welch.confidence_interval()), abs=0.02)
    assert found.p_value() == pytest.approx(welch.pvalue, abs=0.03)


def test_conversations_in_both_count_for_what_they_share() -> None:
    draw = np.random.default_rng(1)
    one = draw.choice([-1.0, 0, 1], 80)
    other = np.where(draw.random(80) < 0.8, one, draw.choice([-1.0, 0, 1], 80))
    names = [f"c{number}" for number in range(80)]
    same = difference(one, other, names * 2)
    paired = stats.ttest_rel(one, other)
    assert same.correlation == pytest.approx(np.corrcoef(one, other)[0, 1])
    assert same.interval() == pytest.approx(tuple(paired.confidence_interval()), abs=0.02)
    apart = difference(one, other, [*names, *(f"d{number}" for number in range(80))])
    assert np.diff(apart.interval()) > 1.5 * np.diff(same.interval())


SCORES = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(SCORES, SCORES, st.lists(st.sampled_from("abcdef"), min_size=16, max_size=16))
@example([0.0, 0.0, 0.0, 1.0], [-1.0, -1.0, 1.0], ["a", "b", "c", "a", "a", "b", *"a" * 10])
def test_p_is_below_5_percent_just_where_the_interval_leaves_0_out(
    one: list[float], other: list[float], groups: list[str]
) -> None:
    found = difference(np.array(one), np.array(other), groups[: len(one) + len(other)])
    low, high = found.interval()
    if math.isnan(low):
        assert math.isnan(found.p_value())
        return
    assert -2 <= low <= found.value <= high <= 2
    if min(abs(low), abs(high)) > 1e-6:
        assert (found.p_value() < 0.05) == (low > 0 or high < 0)


def test_slices_without_a_difference_in_themselves_have_an_interval_yet() -> None:
    names = [f"q{number}" for number in range(20)]
    low, high = difference(np.ones(10), -np.ones(10), names).interval()
    assert 1 < low < high == 2
    low, high = difference(np.ones(1), -np.ones(1), names[:2]).interval()
    assert low < 0 < high == 2
