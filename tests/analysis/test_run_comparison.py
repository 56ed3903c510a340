"""Paired answers, comparisons and their tests: opposite strata apart, exact p-values as of McNemar
and of every sign tried out, one p_holm for a claim whatever else was asked beside it, and the
minimum detectable difference. Of several models, all pairs at once.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from factories import judged_arms
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import tt_solve_power

from vrag_kit.analysis import (
    all_pairs,
    broadcast_baseline,
    config_diff,
    expand_strata,
    flips,
    paired_answers,
    paired_differences,
    paired_tests,
    per_query,
    rank_intervals,
)
from vrag_kit.analysis.run_comparison import minimum_detectable_difference, sign_flip_test
from vrag_kit.analysis.strata import ALL
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


def test_opposite_effects_stand_apart_before_they_are_pooled_to_nothing():
    """Of each 20 questions those in the training data all lose, and the others all gain."""
    trained = np.arange(40) < 20
    strata = np.where(trained, "in training data", "not in training data")
    scores = (trained.astype(float), 1.0 - trained)
    a, b = (noisy(0, n=40).assign(score=each, answer=each, stratum=strata) for each in scores)
    pairs = paired_answers(a, b)
    found = paired_tests(pairs).set_index("stratum")
    assert list(found.index) == ["in training data", "not in training data", "all questions"]
    assert found["value"].tolist() == [-1.0, 1.0, 0.0]
    assert found["verdict"].tolist() == ["lower", "higher", "not significant"]
    assert found["n"].tolist() == [20, 20, 40]
    assert found["n_improved"].tolist() == [0, 20, 20]
    # two exact p-values of 2 / 2**20, and that of 20 against 20, which is 1; each a family
    assert found["p_holm"].tolist() == pytest.approx([2 / 2**20, 2 / 2**20, 1.0])
    directions = flips(pairs).groupby(["direction", "stratum"]).size().to_dict()
    assert directions == {
        ("n_improved", "not in training data"): 20,
        ("n_worsened", "in training data"): 20,
    }


def test_a_difference_of_most_questions_is_found_and_holm_counts_every_row_shown():
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


def test_sides_that_differ_otherwise_than_chosen_are_refused_with_what_to_type():
    a, b = noisy(0).assign(setting="zero_shot", k=0), noisy(1).assign(setting="gold", k=3)
    chosen = {"choose_a": {"setting": "zero_shot"}, "choose_b": {"setting": "gold"}}
    for sides, choice, words in (
        ((a, a.assign(k=5)), {}, r"k is 0 in A and 5 in B. Name .* --b k=5"),
        ((a, b), chosen, r"k is 0 in A and 3 in B.*--a k=0 --b k=3"),
        ((a.assign(query_id="q0"),) * 2, {}, "A has two answers to one query_id"),
    ):
        with pytest.raises(VragError, match=words):
            paired_answers(*sides, **choice)
    chosen["choose_a"]["k"] = 0
    pairs = paired_answers(a, b, **chosen)
    assert set(pairs["a"] + " / " + pairs["b"]) == {"zero-shot (no image), k = 0 / gold, k = 3"}


def test_scores_of_different_judges_are_no_difference_of_answers():
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


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 20))
def test_of_0_and_1_it_is_mcnemars_exact_test(gained, lost, same):
    values = np.repeat([1.0, -1.0, 0.0], [gained, lost, same + 1])
    expected = mcnemar([[same, lost], [gained, 1]], exact=True).pvalue
    assert sign_flip_test(values, ALONE[: len(values)]) == pytest.approx(expected, rel=1e-9)


@given(
    st.lists(st.sampled_from([0.0, 0.25, -0.25, 0.5, 1 / 3, -1.0]), min_size=1, max_size=9),
    st.lists(st.integers(0, 5), min_size=9, max_size=9),
)
def test_it_is_the_share_of_all_sign_flips(values, groups):
    member = np.array(groups[: len(values)])
    sums = [
        sum(v for v, g in zip(values, member, strict=True) if g == name) for name in set(member)
    ]
    signed = [abs(np.dot(signs, sums)) for signs in product([-1, 1], repeat=len(sums))]
    reached = np.mean(np.array(signed) >= abs(sum(sums)) - 1e-9)
    assert sign_flip_test(np.array(values), member) == pytest.approx(reached)


def test_the_minimum_detectable_difference_is_that_of_a_paired_t_test_over_groups():
    values = np.random.default_rng(2).choice([-1.0, -0.5, 0.0, 0.5, 1.0], 90)
    found = minimum_detectable_difference(values, ALONE[:90], SHARES)
    effect = tt_solve_power(nobs=90, alpha=0.05, power=0.8)
    assert found == pytest.approx(effect * values.std(ddof=1))
    in_pairs = minimum_detectable_difference(values.repeat(2), np.arange(180) // 2, SHARES)
    assert in_pairs == pytest.approx(found)
    wider = minimum_detectable_difference(2 * values, ALONE[:90], Scale(-1.0, 1.0))
    assert wider == pytest.approx(2 * found)
    assert minimum_detectable_difference(values, ALONE[:90], SHARES, level=0.005) > found


QUESTIONS = 90


def judged(ks: tuple[int, ...] = (), models: tuple[str, ...] = ("a", "b")) -> pd.DataFrame:
    """Judged answers whose clue helps a little: three baselines, and curves at `ks`."""
    arms: dict[tuple[str, str, int], list[float]] = {}
    for number, model in enumerate(models):
        random = np.random.default_rng(number)
        known = random.random(QUESTIONS) < 0.4
        helped = known | (random.random(QUESTIONS) < 0.2)
        helped[np.flatnonzero(known)[:1]] = False
        baselines = {("zero_shot", 0): known, ("gt_clue", 1): helped, ("non_clue", 1): known}
        curves = product(("top_k", "one_in_k"), ks)
        scores = baselines | {arm: random.random(QUESTIONS) < 0.45 for arm in curves}
        arms |= {(model, *arm): list(map(float, right)) for arm, right in scores.items()}
    return judged_arms(arms, group=[f"s{number % 45}" for number in range(QUESTIONS)])


def test_the_k_and_models_of_one_curve_are_corrected_together_and_a_stratum_apart():
    table = expand_strata(judged((3, 5, 7)), {"a": ["s1", "s2", "s3"], "b": ["s1", "s2", "s3"]})
    values = broadcast_baseline(
        per_query(table, by=["model", "stratum", "setting", "k"]),
        arm="setting",
        baseline="zero_shot",
    )
    found = paired_differences(
        values, arm="setting", by=["model", "stratum", "k"], baseline="zero_shot"
    )
    for (setting, _), family in found.groupby(["setting", "stratum"]):
        assert len(family) == (6 if setting in ("top_k", "one_in_k") else 2)
        least = family.loc[family["p"].idxmin()]
        assert least["p_holm"] == pytest.approx(min(1.0, len(family) * least["p"]))
    pooled = values[values["stratum"] == ALL]
    alone = paired_differences(
        pooled, arm="setting", by=["model", "stratum", "k"], baseline="zero_shot"
    )
    of_all = found[found["stratum"] == ALL].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, of_all)


def failed(table: pd.DataFrame, model: str, setting: str) -> pd.DataFrame:
    """The same answers, with no verdict on those of an arm."""
    lost = (table["model"] == model) & (table["setting"] == setting)
    return table.assign(score=table["score"].mask(lost))


@pytest.mark.parametrize("setting", ["gt_clue", "zero_shot"])
def test_an_arm_whose_calls_all_failed_is_a_row_without_a_number(setting):
    values = per_query(failed(judged(), "b", setting), by=["model", "setting"])
    found = paired_differences(values, arm="setting", by=["model"], baseline="zero_shot")
    row = found.set_index(["setting", "model"]).loc[("gt_clue", "b")]
    assert row[["n", "n_failed"]].tolist() == [0, QUESTIONS]
    assert row[["value", "ci_low", "ci_high", "p", "p_holm"]].isna().all()
    other = found.set_index(["setting", "model"]).loc[("gt_clue", "a")]
    assert other["p_holm"] == other["p"]  # what was not tested does not count


def test_n_and_n_failed_are_the_questions_that_both_were_asked():
    table = judged(models=("a",))
    of_arm = table["setting"] == "gt_clue"
    lost = table.assign(score=table["score"].mask(of_arm & table["query_id"].isin(["q1", "q2"])))
    values = per_query(lost[~(of_arm & (lost["query_id"] == "q3"))], by=["model", "setting"])
    found = paired_differences(values, arm="setting", by=["model"], baseline="zero_shot")
    row = found.set_index("setting").loc["gt_clue"]
    assert row[["n", "n_failed"]].tolist() == [QUESTIONS - 3, 2]


def test_a_baseline_that_was_never_asked_is_refused_with_those_that_were():
    values = per_query(judged(), by=["model", "setting"])
    with pytest.raises(VragError, match=r"'text_rag' was not asked.*zero_shot, gt_clue, non_clue"):
        paired_differences(values, arm="setting", by=["model"], baseline="text_rag")


BY = ["setting", "k"]


def scores(*shares: float, n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Answers of one model for each share of correct ones, at random."""
    random = np.random.default_rng(seed)
    return judged_arms(
        {(f"m{i}", "top_k", 1): random.binomial(1, share, n) for i, share in enumerate(shares)}
    )


def test_two_models_have_the_interval_of_their_paired_difference():
    judged = scores(0.7, 0.4)
    (pair,) = all_pairs(judged).itertuples()
    (single,) = paired_differences(
        per_query(judged), arm="model", by=BY, baseline="m1"
    ).itertuples()
    assert (pair.value, pair.ci_low, pair.ci_high) == (single.value, single.ci_low, single.ci_high)


def test_an_interval_excludes_zero_where_bonferroni_rejects():
    pairs = all_pairs(scores(0.8, 0.5, 0.45, 0.2))
    rejected, *_ = multipletests(pairs["p"], alpha=0.05, method="bonferroni")
    assert list((pairs["ci_low"] > 0) | (pairs["ci_high"] < 0)) == list(rejected)
    assert 0 < rejected.sum() < len(pairs) == 6


def test_ranks_are_those_that_the_intervals_leave_open():
    found = [("a", "b", 0.1, 0.5), ("a", "c", 0.2, 0.6), ("b", "c", -0.1, 0.3)]
    pairs = pd.DataFrame(found, columns=["a", "b", "ci_low", "ci_high"]).assign(setting="s", k=1)
    ranks = rank_intervals(pairs).set_index("arm")[["rank_low", "rank_high"]]
    assert ranks.T.to_dict("list") == {"a": [1, 1], "b": [2, 3], "c": [2, 3]}


def test_one_model_has_no_pair_and_a_missing_verdict_is_counted():
    assert all_pairs(scores(0.5)).empty
    judged = scores(0.6, 0.4, n=10)
    judged.loc[3, "score"] = np.nan
    assert all_pairs(judged)[["n", "n_failed"]].to_numpy().tolist() == [[9, 1]]
