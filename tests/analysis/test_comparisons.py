"""A comparison is one claim: it has one p_holm and one wording, whatever else was asked
beside it, and it stays in the table when all its answers failed.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from factories import judged_arms

from vrag_kit.analysis import broadcast_baseline, expand_strata, paired_differences, per_query
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
