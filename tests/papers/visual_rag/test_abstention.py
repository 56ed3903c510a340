"""Abstention: the two detectors, their agreement, what falls with k, and accuracy among
the answers given, against hand calculations and printed numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from vrag_kit.analysis import (
    associations,
    mean_scores,
    paired_differences,
    per_query,
    selective_accuracy,
)
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.judging import RuleJudge, judge_answers
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.abstention import detect_abstention, smallest_and_largest_k

DECLINES, ANSWERS = "I don't know", "red"


def table(rows: list[tuple[str, str, float]], *, groups: int = 4) -> pd.DataFrame:
    """Judged answers of one model, (answer, marks, score) each, on queries q0, q1, …"""
    frame = pd.DataFrame(rows, columns=["answer", "marks", "score"]).assign(
        model="m", setting="gt_clue", k=1, status="ok"
    )
    frame["query_id"] = [f"q{i % groups}" for i in range(len(frame))]
    frame["group"] = frame["query_id"].map(GROUPS)
    frame["abstained"] = frame["flagged"] = (
        frame["marks"].str.contains("abstention").astype(float).where(frame["score"].notna())
    )
    return frame


GROUPS = {f"q{i}": f"s{i}" for i in range(8)}
MIXED = (
    [(DECLINES, "abstention", 0.0)] * 2
    + [(ANSWERS, "abstention", 0.0)]
    + [(DECLINES, "hallucination", 0.0)]
    + [(ANSWERS, "", 1.0)] * 4
)


def test_the_detectors_read_the_judges_mark_and_the_answers_words() -> None:
    found = detect_abstention(
        table([*MIXED[:5], ("It cannot be seen; red", "abstention, redundant", 0.0)])
    )
    assert list(found["judge_flag"]) == [1, 1, 1, 0, 0, 1]
    assert list(found["phrase_match"]) == [1, 1, 0, 1, 0, 1]


def test_a_failed_question_has_neither_and_an_unreadable_verdict_no_mark() -> None:
    judged = table([(DECLINES, "", math.nan), (DECLINES, "", math.nan)])
    judged.loc[0, ["status", "answer"]] = ["timeout", None]
    found = detect_abstention(judged)
    np.testing.assert_array_equal(found["judge_flag"], [np.nan, np.nan])
    np.testing.assert_array_equal(found["phrase_match"], [np.nan, 1.0])


def agreement(judged: pd.DataFrame) -> pd.Series:
    found = detect_abstention(judged)
    return associations(found, "judge_flag", "phrase_match", measures=["kappa"]).iloc[0]


def test_agreement_is_cohens_kappa_of_a_table_worked_by_hand() -> None:
    row = agreement(table([*MIXED, (DECLINES, "", math.nan)]))
    # observed 6/8, by chance (3 · 3 + 5 · 5) / 64 = 34/64: (48/64 − 34/64) / (30/64) = 14/30
    assert row["value"] == pytest.approx(14 / 30)
    by_sklearn = cohen_kappa_score([1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0])
    assert row["value"] == pytest.approx(by_sklearn)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert (row["n"], row["n_failed"]) == (8, 1)


def test_with_the_rule_judge_the_detectors_part_only_where_a_trait_follows(
    write_annotations: Callable[..., Path], tree: Path
) -> None:
    benchmark = load_visual_rag(write_annotations({}), tree)
    (query_id,) = benchmark.queries
    said = [DECLINES, "red", "I don't know, perhaps red", "It cannot be determined"]
    answers = pd.DataFrame(
        {
            "model": "m",
            "query_id": query_id,
            "answer": said,
            "status": "ok",
            "answer_id": list("abcd"),
        }
    )
    found = detect_abstention(judge_answers(RuleJudge(), benchmark, answers))
    assert list(found["phrase_match"] - found["judge_flag"]) == [0, 0, 1, 0]


def test_detectors_that_never_differ_agree_fully_without_an_interval() -> None:
    row = agreement(table([MIXED[0], MIXED[4]] * 4))
    assert row["value"] == 1
    assert math.isnan(row["ci_low"])
    assert math.isnan(agreement(table([MIXED[4]] * 4))["value"])  # no abstention to agree on


def test_the_accuracy_of_answers_given_leaves_out_what_was_declined() -> None:
    row = selective_accuracy(
        table(
            [
                (ANSWERS, "", 1.0),
                (ANSWERS, "", 0.5),
                (DECLINES, "abstention", 0.0),
                (DECLINES, "abstention", 0.0),
                (ANSWERS, "", math.nan),
            ]
        ),
    ).iloc[0]
    assert row["value"] == 0.75  # (1 + 0.5) / 2
    assert (row["n"], row["n_declined"], row["n_failed"]) == (2, 2, 1)
    assert row["accuracy"] == pytest.approx(
        (1 + 0.5 + 0 + 0) / 4
    )  # q0 was asked twice, and answered once


def test_accuracy_is_the_share_of_answers_given_times_their_accuracy() -> None:
    rng = np.random.default_rng(0)
    rows = [
        (
            (DECLINES, "abstention", 0.0)
            if rng.random() < 0.4
            else (ANSWERS, "", float(rng.integers(0, 3)) / 2)
        )
        for _ in range(80)
    ]
    judged = table(rows, groups=8)
    both, row = (
        mean_scores(judged).set_index("metric")["value"],
        selective_accuracy(judged).iloc[0],
    )
    assert both["accuracy"] == pytest.approx((1 - both["abstention"]) * row["value"])
    assert row["accuracy"] == pytest.approx(both["accuracy"])


def test_when_every_answer_declines_there_is_no_accuracy_of_answers_given() -> None:
    row = selective_accuracy(table([MIXED[0]] * 3)).iloc[0]
    assert math.isnan(row["value"])
    assert (row["n"], row["n_declined"], row["accuracy"]) == (0, 3, 0)


def over_k(rates: dict[tuple[str, int], list[float]]) -> pd.DataFrame:
    parts = []
    for (setting, k), values in rates.items():
        numbers = [str(i) for i in range(len(values))]
        part = pd.DataFrame({"query_id": numbers, "group": numbers, "value": values})
        parts.append(part.assign(model="m", setting=setting, k=k))
    return pd.concat(parts)


def test_the_change_is_from_smallest_to_largest_k_of_a_setting_on_the_same_queries() -> None:
    rates: dict[tuple[str, int], list[float]] = {
        ("zero_shot", 0): [1, 1, 1],
        ("top_k", 1): [1, 1, 0],
        ("top_k", 3): [0, 0, 0],
        ("top_k", 20): [0, 1, math.nan],
        ("one_in_k", 3): [0, 0.5, 0],
        ("one_in_k", 5): [1, 1, 0],
    }
    ends = smallest_and_largest_k(over_k(rates), ["model", "setting"])
    by = ["model", "setting", "ks"]
    change = paired_differences(ends, arm="end", by=by, baseline="smallest k")
    found = change.set_index(["setting", "ks"])[["value", "n"]].T.to_dict("list")
    # top-k: −1, 0, and no answer at 20; 1-in-k: 1, 0.5, 0; zero-shot has one k only
    assert found == {("top_k", "1 to 20"): [-0.5, 2], ("one_in_k", "3 to 5"): [0.5, 3]}


def test_without_several_k_there_is_no_change() -> None:
    assert smallest_and_largest_k(over_k({("zero_shot", 0): [1, 0]}), ["model"]).empty


def test_the_ends_of_table_8_are_those_of_each_model() -> None:
    ends = smallest_and_largest_k(published("visual_rag", table=8), ["model", "setting"])
    wide = ends.set_index(["model", "setting", "end"])
    assert wide.loc[("GPT-4o", "top_k"), "value"].tolist() == [58.02, 10.70]
    # the paper shows Pixtral at most 15 images
    assert set(wide.loc[("Pixtral", "one_in_k"), "ks"]) == {"3 to 15"}
    assert len(ends) == 2 * 16


def test_a_rate_over_draws_is_averaged_by_query_first() -> None:
    judged = table(
        [
            (DECLINES, "abstention", 0.0),
            (ANSWERS, "", 1.0),
            (DECLINES, "abstention", 0.0),
            (DECLINES, "abstention", 0.0),
        ],
        groups=2,
    )
    assert list(per_query(judged, metric="abstention")["value"]) == [1.0, 0.5]
