"""What answers are beside their score: abstentions, errors, outcomes with an altered image, and
how ROUGE goes with accuracy.
"""

from __future__ import annotations

import math

import factories
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vrag_kit.analysis import column_means, paired_differences, selective_accuracy
from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers, load_judge
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag import reported
from vrag_kit.papers.visual_rag.answers import (
    OUTCOMES,
    counterfactual_outcomes,
    detect_abstention,
    error_cases,
    rouge_figure,
    rouge_mean_correlation,
    smallest_and_largest_k,
)
from vrag_kit.types import Query

FOLLOWS, KEEPS, ABSTAINS, ELSE = OUTCOMES


def test_the_detectors_read_the_judges_mark_and_the_answers_words():
    said = ["I don't know", "red", "I don't know", "red", "I don't know", None]
    flags = [1.0, 1.0, 0.0, 0.0, np.nan, np.nan]  # the fifth verdict was not readable
    table = factories.judged(answer=said, flagged=flags, status=["ok"] * 5 + ["timeout"])
    found = detect_abstention(table)
    np.testing.assert_array_equal(found["judge_flag"], flags)
    np.testing.assert_array_equal(found["phrase_match"], [1, 0, 1, 0, 1, np.nan])


def test_accuracy_is_the_share_of_answers_given_times_their_accuracy():
    scores, abstained = [1.0, 0.5, 0.0, 0.0, math.nan], [0.0, 0.0, 1.0, 1.0, math.nan]
    row = selective_accuracy(factories.judged(score=scores, abstained=abstained)).iloc[0]
    assert (row["value"], row["n"], row["n_declined"], row["n_failed"]) == (0.75, 2, 2, 1)
    assert row["accuracy"] == pytest.approx((1 - 2 / 4) * row["value"])
    none = selective_accuracy(factories.judged(score=[0.0] * 3, abstained=1.0)).iloc[0]
    assert math.isnan(none["value"])


def test_the_change_is_from_smallest_to_largest_k_of_a_setting_on_the_same_queries():
    rates = {("zero_shot", 0): [1, 1, 1], ("top_k", 1): [1, 1, 0], ("top_k", 3): [0, 0, 0]}
    rates |= {("top_k", 20): [0, 1, math.nan]}
    rates |= {("one_in_k", 3): [0, 0.5, 0], ("one_in_k", 5): [1, 1, 0]}
    table = factories.judged_arms(rates, ["setting", "k"]).rename(columns={"score": "value"})
    ends = smallest_and_largest_k(table, ["model", "setting"])
    by = ["model", "setting", "ks"]
    change = paired_differences(ends, arm="end", by=by, baseline="smallest k")
    found = change.set_index(["setting", "ks"])[["value", "n"]].T.to_dict("list")
    # top-k: −1, 0, and no answer at 20; 1-in-k: 1, 0.5, 0; zero-shot has one k only
    assert found == {("top_k", "1 to 20"): [-0.5, 2], ("one_in_k", "3 to 5"): [0.5, 3]}
    paper = smallest_and_largest_k(published("visual_rag", table=8), ["model", "setting"])
    of_gpt = paper.query("model == 'GPT-4o' and setting == 'top_k'")
    assert of_gpt["value"].tolist() == [58.02, 10.70]


def test_error_cases_are_the_answers_not_fully_correct_once_each_incorrect_ones_first():
    rows = [("q0", 0.5), ("q1", 0.0), ("q2", 1.0), ("q1", 0.0), ("q1", 0.0), ("q0", np.nan)]
    table = pd.DataFrame(rows, columns=["query_id", "score"])
    table = factories.judged(**table, answer="blue").assign(draw=range(6))
    table.loc[4, ["answer", "abstained"]] = ["I don't know", 1.0]
    asked = [Query(query_id=f"q{n}", text=f"What {n}?", answers=("red", "rose")) for n in range(3)]
    cases = error_cases(table, factories.benchmark(asked))
    assert cases[["query_id", "outcome", "draw"]].to_numpy().tolist() == [
        ["q1", "incorrect", 1],
        ["q1", "abstained", 4],
        ["q0", "partially correct", 0],
    ]
    assert cases.loc[0, ["question", "references"]].tolist() == ["What 1?", "red | rose"]


def judged_as(value: str, answers: pd.DataFrame) -> pd.DataFrame:
    """Verdicts on the answers where this value is right."""
    asked = [Query(query_id=name, text="?", answers=(value,)) for name in answers["query_id"]]
    return judge_answers(load_judge("rule"), factories.benchmark(asked), answers)


def outcomes(*said: str | None) -> pd.DataFrame:
    """Outcomes where the original value is red, the new one blue; None: the call failed."""
    status = pd.Series(said).map({None: "error", "": "empty"}).fillna("ok").tolist()
    table = factories.answers(answer=list(said), status=status)
    return counterfactual_outcomes(judged_as("red", table), judged_as("blue", table))


def test_each_answer_has_one_of_four_outcomes_or_none_that_is_known():
    said = ["blue", "red", "I don't know", "green", "red and blue", "", "not red, blue"]
    found = outcomes(*said)[list(OUTCOMES)]
    assert list(found.idxmax(axis=1)) == [FOLLOWS, KEEPS, ABSTAINS, ELSE, ELSE, ELSE, FOLLOWS]
    assert (found.sum(axis=1) == 1).all()
    shares = column_means(outcomes("blue", None), list(OUTCOMES), by=["model"])
    assert shares[["n", "n_failed"]].to_numpy().tolist() == [[1, 1]] * 4


def test_tables_of_different_answers_are_refused():
    one, two = (factories.answers(answer=["red", last]) for last in ("blue", "green"))
    with pytest.raises(VragError, match="not the same answers"):
        counterfactual_outcomes(judged_as("red", one), judged_as("red", two))


PARTS = [reported(3), reported([14, 16], statistic=["avg", "single"])]
ARMS = pd.concat(PARTS, ignore_index=True).assign(source="paper")
WIDE = ARMS.pivot_table(index=["model", "setting", "k"], columns="metric", values="value")


def test_arms_are_correlated_within_models_or_across_them():
    within = rouge_mean_correlation(ARMS, ["source", "model"]).loc["paper"]
    across = rouge_mean_correlation(ARMS, ["source", "setting", "k"]).loc["paper"]
    of_one = stats.spearmanr(*WIDE.loc["GPT-4o"].T.to_numpy()).statistic
    assert within.loc["GPT-4o", "value"] == pytest.approx(of_one)
    few = ("Pixtral", "Llama3.2-V")
    assert within["n"].to_dict() == {name: 14 if name in few else 16 for name in within.index}
    part = WIDE.xs(("non_clue", 1), level=("setting", "k"))
    of_arm = stats.spearmanr(*part.T.to_numpy()).statistic
    assert across.loc[("non_clue", 1), "value"] == pytest.approx(of_arm)


def test_the_rouge_figure_has_a_point_for_every_arm_and_the_correlation_of_its_models():
    ours = ARMS.query("model == 'GPT-4o'").assign(model="mine", source="mine")
    left, right = rouge_figure(pd.concat([ours, ARMS]), title="", caption="").axes
    drawn = np.vstack([points.get_offsets() for points in right.collections])
    expected = np.sort(WIDE[["accuracy", "rouge"]].to_numpy(), axis=0)
    np.testing.assert_allclose(np.sort(drawn, axis=0), expected)
    words = [text.get_text() for text in left.get_legend().get_texts()]
    assert words == ["mine: ρ = 0.79"]
    assert len(right.get_legend().get_texts()) == 8
