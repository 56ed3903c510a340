"""Abstention: the two detectors, what changes with k, and accuracy of the answers given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from factories import judged, judged_arms

from vrag_kit.analysis import mean_scores, paired_differences, selective_accuracy
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.abstention import detect_abstention, smallest_and_largest_k


def test_the_detectors_read_the_judges_mark_and_the_answers_words() -> None:
    said = ["I don't know", "red", "I don't know", "red", "I don't know", None]
    flags = [1.0, 1.0, 0.0, 0.0, np.nan, np.nan]  # the fifth verdict was not readable
    table = judged(answer=said, flagged=flags, status=["ok"] * 5 + ["timeout"])
    found = detect_abstention(table)
    np.testing.assert_array_equal(found["judge_flag"], flags)
    np.testing.assert_array_equal(found["phrase_match"], [1, 0, 1, 0, 1, np.nan])


def test_accuracy_is_the_share_of_answers_given_times_their_accuracy() -> None:
    scores, abstained = [1.0, 0.5, 0.0, 0.0, math.nan], [0.0, 0.0, 1.0, 1.0, math.nan]
    table = judged(score=scores, abstained=abstained)
    row = selective_accuracy(table).iloc[0]
    assert row["value"] == 0.75  # (1 + 0.5) / 2
    assert (row["n"], row["n_declined"], row["n_failed"]) == (2, 2, 1)
    both = mean_scores(table).set_index("metric")["value"]
    assert both["accuracy"] == pytest.approx((1 - both["abstention"]) * row["value"])
    assert row["accuracy"] == pytest.approx(both["accuracy"])
    none = selective_accuracy(judged(score=[0.0] * 3, abstained=1.0)).iloc[0]
    assert math.isnan(none["value"])


def test_the_change_is_from_smallest_to_largest_k_of_a_setting_on_the_same_queries() -> None:
    rates = {("zero_shot", 0): [1, 1, 1], ("top_k", 1): [1, 1, 0], ("top_k", 3): [0, 0, 0]}
    rates |= {("top_k", 20): [0, 1, math.nan]}
    rates |= {("one_in_k", 3): [0, 0.5, 0], ("one_in_k", 5): [1, 1, 0]}
    table = judged_arms(rates, ["setting", "k"]).rename(columns={"score": "value"})
    ends = smallest_and_largest_k(table, ["model", "setting"])
    by = ["model", "setting", "ks"]
    change = paired_differences(ends, arm="end", by=by, baseline="smallest k")
    found = change.set_index(["setting", "ks"])[["value", "n"]].T.to_dict("list")
    # top-k: −1, 0, and no answer at 20; 1-in-k: 1, 0.5, 0; zero-shot has one k only
    assert found == {("top_k", "1 to 20"): [-0.5, 2], ("one_in_k", "3 to 5"): [0.5, 3]}


def test_the_ends_of_table_8_are_those_of_each_model() -> None:
    ends = smallest_and_largest_k(published("visual_rag", table=8), ["model", "setting"])
    assert len(ends) == 2 * 16
    of_gpt = ends.query("model == 'GPT-4o' and setting == 'top_k'")
    assert of_gpt["value"].tolist() == [58.02, 10.70]
    # the paper shows Pixtral at most 15 images
    of_pixtral = ends.query("model == 'Pixtral' and setting == 'one_in_k'")
    assert set(of_pixtral["ks"]) == {"3 to 15"}
