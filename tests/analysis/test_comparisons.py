"""A comparison is one claim: it has one p_holm and one wording, whatever else was asked beside it,
and it stays in the table when all its answers failed. Of several models, all pairs at once.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from factories import judged_arms
from statsmodels.stats.multitest import multipletests

from vrag_kit.analysis import (
    all_pairs,
    broadcast_baseline,
    expand_strata,
    paired_differences,
    per_query,
    rank_intervals,
)
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError

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


def test_the_k_and_models_of_one_curve_are_corrected_together_and_a_stratum_apart() -> None:
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
def test_an_arm_whose_calls_all_failed_is_a_row_without_a_number(setting: str) -> None:
    values = per_query(failed(judged(), "b", setting), by=["model", "setting"])
    found = paired_differences(values, arm="setting", by=["model"], baseline="zero_shot")
    row = found.set_index(["setting", "model"]).loc[("gt_clue", "b")]
    assert row[["n", "n_failed"]].tolist() == [0, QUESTIONS]
    assert row[["value", "ci_low", "ci_high", "p", "p_holm"]].isna().all()
    other = found.set_index(["setting", "model"]).loc[("gt_clue", "a")]
    assert other["p_holm"] == other["p"]  # what was not tested does not count


def test_n_and_n_failed_are_the_questions_that_both_were_asked() -> None:
    table = judged(models=("a",))
    of_arm = table["setting"] == "gt_clue"
    lost = table.assign(score=table["score"].mask(of_arm & table["query_id"].isin(["q1", "q2"])))
    values = per_query(lost[~(of_arm & (lost["query_id"] == "q3"))], by=["model", "setting"])
    found = paired_differences(values, arm="setting", by=["model"], baseline="zero_shot")
    row = found.set_index("setting").loc["gt_clue"]
    assert row[["n", "n_failed"]].tolist() == [QUESTIONS - 3, 2]


def test_a_baseline_that_was_never_asked_is_refused_with_those_that_were() -> None:
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
