"""The exact test is McNemar's where that applies, agrees with every sign tried out, and
claims nothing too often; the minimum detectable difference is found as often as said.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import tt_solve_power

from vrag_kit.analysis.run_comparison import minimum_detectable_difference, sign_flip_test
from vrag_kit.judging import Scale

SHARES = Scale(0.0, 1.0)
ALONE = np.arange(10_000)
"""Every query a group of its own."""


def flipped(gained: int, lost: int, same: int) -> np.ndarray:
    return np.repeat([1.0, -1.0, 0.0], [gained, lost, same])


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 20))
@settings(deadline=None)
def test_of_right_and_wrong_answers_it_is_mcnemars_exact_test(
    gained: int, lost: int, same: int
) -> None:
    values = flipped(gained, lost, same + 1)
    expected = mcnemar([[same, lost], [gained, 1]], exact=True).pvalue
    assert sign_flip_test(values, ALONE[: len(values)]) == pytest.approx(expected, rel=1e-9)


def test_five_flips_in_one_direction_are_no_claim_and_six_are() -> None:
    # 2 / 2**5 = 0.0625 and 2 / 2**6 = 0.03125
    assert sign_flip_test(flipped(5, 0, 95), ALONE[:100]) == pytest.approx(0.0625)
    assert sign_flip_test(flipped(6, 0, 94), ALONE[:100]) == pytest.approx(0.03125)


@given(
    st.lists(st.sampled_from([0.0, 0.25, -0.25, 0.5, 1 / 3, -1.0]), min_size=1, max_size=9),
    st.lists(st.integers(0, 5), min_size=9, max_size=9),
)
@settings(deadline=None)
def test_it_is_the_share_of_all_signs_that_reach_as_far(
    values: list[float], groups: list[int]
) -> None:
    member = np.array(groups[: len(values)])
    sums = [
        sum(v for v, g in zip(values, member, strict=True) if g == name) for name in set(member)
    ]
    signed = [abs(np.dot(signs, sums)) for signs in product([-1, 1], repeat=len(sums))]
    reached = np.mean(np.array(signed) >= abs(sum(sums)) - 1e-9)
    assert sign_flip_test(np.array(values), member) == pytest.approx(reached)


def test_it_agrees_with_scipys_permutation_test_of_real_scores() -> None:
    values = np.random.default_rng(3).normal(0.4, 1, 11)
    found = stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=2**11)
    assert sign_flip_test(values, ALONE[:11]) == pytest.approx(found.pvalue)
    assert math.isnan(sign_flip_test(np.random.default_rng(3).normal(0.4, 1, 60), ALONE[:60]))


def test_queries_of_one_group_count_as_one() -> None:
    # six gained queries in two groups: both signs agree in 2 of 4 ways
    assert sign_flip_test(flipped(6, 0, 0), np.repeat([0, 1], 3)) == pytest.approx(0.5)


def test_two_runs_of_one_model_are_told_apart_about_as_often_as_the_level_allows() -> None:
    draws = np.random.default_rng(0)
    claims = 0
    for _ in range(1000):
        truth = draws.random(40)  # how often each question is answered rightly
        first, second = draws.random((2, 40)) < truth
        claims += sign_flip_test(first.astype(float) - second, ALONE[:40]) < 0.05
    assert 5 <= claims <= 55  # exact tests of few flips claim less often than 5 %


@pytest.mark.parametrize(("n", "share"), [(200, 0.3), (500, 0.2), (1000, 0.1)])
def test_it_is_found_by_mcnemars_exact_test_about_as_often_as_said(n: int, share: float) -> None:
    flips = round(n * share)
    values = flipped(flips // 2, flips - flips // 2, n - flips)
    found = minimum_detectable_difference(values, ALONE[:n], SHARES)
    draws = np.random.default_rng(1)
    gains = (flips / n + found) / 2  # share gained less share lost is the difference
    counts = draws.multinomial(n, [gains, flips / n - gains, 1 - flips / n], size=4000)
    p = 2 * stats.binom.sf(counts[:, :2].max(axis=1) - 1, counts[:, :2].sum(axis=1), 0.5)
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.05)


def test_the_minimum_detectable_difference_is_that_of_a_paired_t_test_over_groups() -> None:
    values = np.random.default_rng(2).choice([-1.0, -0.5, 0.0, 0.5, 1.0], 90)
    found = minimum_detectable_difference(values, ALONE[:90], SHARES)
    effect = tt_solve_power(nobs=90, alpha=0.05, power=0.8)
    assert found == pytest.approx(effect * values.std(ddof=1))
    in_pairs = minimum_detectable_difference(values.repeat(2), np.arange(180) // 2, SHARES)
    assert in_pairs == pytest.approx(found)
    wider = minimum_detectable_difference(2 * values, ALONE[:90], Scale(-1.0, 1.0))
    assert wider == pytest.approx(2 * found)
    assert minimum_detectable_difference(values, ALONE[:90], SHARES, level=0.005) > found


@pytest.mark.parametrize("groups", [2, 4, 5, 6, 8, 9])
@pytest.mark.parametrize("level", [0.05, 0.05 / 10])
def test_where_even_all_changes_in_one_direction_are_no_surprise_none_is_detectable(
    groups: int, level: float
) -> None:
    member = np.arange(200) % 20
    changed = (member < groups).astype(float)
    reachable = sign_flip_test(changed, member) <= level
    found = minimum_detectable_difference(changed, member, SHARES, level=level)
    assert math.isnan(found) is not reachable
    assert math.isnan(minimum_detectable_difference(np.zeros(200), member, SHARES))
