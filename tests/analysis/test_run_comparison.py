"""Paired answers and their tests: opposite strata apart, exact p-values as of McNemar and of every
sign tried out, families of Holm, and the minimum detectable difference.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import tt_solve_power

from vrag_kit.analysis import (
    config_diff,
    flips,
    paired_answers,
    paired_tests,
)
from vrag_kit.analysis.run_comparison import minimum_detectable_difference, sign_flip_test
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale

SHARES = Scale(0.0, 1.0)
ALONE = np.arange(10_000)
"""Every query a group of its own."""


def noisy(seed: int, n: int = 60) -> pd.DataFrame:
    """Answers of one model, sampled: which questions it gets right is half chance."""
    names = [f"q{number}" for number in range(n)]
    often = np.random.default_rng(99).random(n)
    score = (np.random.default_rng(seed).random(n) < often).astype(float)
    asked = {"benchmark": "toy", "model": "m", "setting": "s", "k": 1, "draw": 0, "sample": 0}
    given = {"doc_ids": [()] * n, "answer": score.astype(str), "status": "ok"}
    return pd.DataFrame({**asked, "query_id": names, "group": names, **given, "score": score})


def opposite() -> list[pd.DataFrame]:
    """Two sides: of each 20 questions the told ones all lose, and the others all gain."""
    a, b = noisy(0, n=40), noisy(0, n=40)
    told = np.arange(40) < 20
    strata = np.where(told, "in training data", "not in training data")
    sides = [a.assign(score=told.astype(float)), b.assign(score=1.0 - told)]
    return [side.assign(stratum=strata, answer=side["score"].astype(str)) for side in sides]


def test_opposite_effects_stand_apart_before_they_are_pooled_to_nothing() -> None:
    pairs = paired_answers(*opposite())
    found = paired_tests(pairs).set_index("stratum")
    assert list(found.index) == ["in training data", "not in training data", "all questions"]
    assert found["value"].tolist() == [-1.0, 1.0, 0.0]
    assert found["verdict"].tolist() == ["lower", "higher", "not significant"]
    assert found["n"].tolist() == [20, 20, 40]
    assert found["n_improved"].tolist() == [0, 20, 20]
    # two exact p-values of 2 / 2**20, and that of 20 against 20, which is 1; each a family
    assert found["p_holm"].tolist() == pytest.approx([2 / 2**20, 2 / 2**20, 1.0])
    flipped = flips(pairs)[["direction", "stratum"]].drop_duplicates()
    assert flipped.to_numpy().tolist() == [
        ["n_improved", "not in training data"],
        ["n_worsened", "in training data"],
    ]


def test_a_difference_of_most_questions_is_found_and_holm_counts_every_row_shown() -> None:
    a, b = noisy(0), noisy(1)
    ten = [f"q{number}" for number in range(10)]
    b["score"] = np.where(b["query_id"].isin(ten), 1.0, a["score"])
    a["score"] = np.where(a["query_id"].isin(ten), 0.0, a["score"])
    settings = [f"s{number}" for number in range(30)]
    alone = paired_tests(paired_answers(a, b))
    assert alone["verdict"].tolist() == ["higher"]
    assert alone["p"][0] == alone["p_holm"][0] == pytest.approx(2 / 2**10)
    many = [pd.concat([side.assign(setting=name) for name in settings]) for side in (a, b)]
    shown = paired_tests(paired_answers(*many))
    assert shown["p_holm"].tolist() == pytest.approx([min(1.0, 30 * 2 / 2**10)] * 30)
    assert set(shown["verdict"]) == {"not significant"}
    assert alone["mde"].notna().all()
    assert shown["mde"].isna().all()  # ten changed questions are no surprise among thirty rows


def test_a_stratum_and_all_questions_are_families_of_their_own() -> None:
    """By hand: all 12 of q0 to q11 gained in three ways of asking, half of them a stratum."""
    settings, names = ["s0", "s1", "s2"], [f"q{number}" for number in range(12)]
    sides = []
    for score in (0.0, 1.0):
        side = noisy(0, n=12).assign(score=score)
        side["stratum"] = side["query_id"].isin(names[:6]).map({True: "first", False: "second"})
        sides.append(pd.concat([side.assign(setting=name) for name in settings]))
    found = paired_tests(paired_answers(*sides)).set_index("stratum")
    assert found.loc["first", "p"].tolist() == pytest.approx([2 / 2**6] * 3)
    assert found.loc["first", "p_holm"].tolist() == pytest.approx([3 * 2 / 2**6] * 3)
    assert found.loc["all questions", "p_holm"].tolist() == pytest.approx([3 * 2 / 2**12] * 3)


def test_where_nothing_is_asked_alike_it_says_what_each_side_has() -> None:
    b = pd.concat([noisy(1).assign(k=k) for k in (1, 5)])
    with pytest.raises(VragError, match=r"k is 0 in A and 1, 5 in B. Name .* --b k=1"):
        paired_answers(noisy(0).assign(k=0), b)
    with pytest.raises(VragError, match="benchmark is toy in A and other in B"):
        paired_answers(noisy(0), noisy(1).assign(benchmark="other"))


def test_nothing_is_guessed_a_column_that_is_not_named_has_to_be_equal() -> None:
    a, b = noisy(0).assign(setting="zero_shot", k=0), noisy(1).assign(setting="gold", k=3)
    named = {"choose_a": {"setting": "zero_shot"}, "choose_b": {"setting": "gold"}}
    with pytest.raises(VragError, match=r"k is 0 in A and 3 in B.*--a k=0 --b k=3"):
        paired_answers(a, b, **named)
    named = {"choose_a": named["choose_a"] | {"k": 0}, "choose_b": named["choose_b"]}
    pairs = paired_answers(a, b, **named)
    assert set(pairs["a"] + " / " + pairs["b"]) == {"zero-shot (no image), k = 0 / gold, k = 3"}


def test_a_side_with_two_answers_of_one_kind_is_refused() -> None:
    twice = pd.concat([noisy(0), noisy(1)])
    with pytest.raises(VragError, match="A has two answers to one query_id"):
        paired_answers(twice, twice)


def test_scores_of_different_judges_are_no_difference_of_answers() -> None:
    """Judges of one name are different if their rubric is."""
    a = noisy(0).assign(judge="rule", judge_id="1f0c")
    for judge, judge_id, named in (
        ("mine:Generous", "1f0c", ("rule", "mine:Generous")),
        ("rule", "77ab", ("rule (1f0c)", "rule (77ab)")),
    ):
        b = a.assign(judge=judge, judge_id=judge_id, score=1.0)
        (row,) = paired_tests(paired_answers(a, b)).to_dict("records")
        assert (row["judge_a"], row["judge_b"]) == named
        assert row["verdict"] == "different judges"
        assert row["p_holm"] < 0.001
        assert set(config_diff(a, b)["setting"]) <= {"judge", "judge_id"}
    assert paired_tests(paired_answers(a, a.assign(score=1.0)))["verdict"].tolist() == ["higher"]


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
