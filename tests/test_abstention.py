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
    mean_scores,
    per_query,
    selective_accuracy,
)
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.judging import RuleJudge, judge_answers
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.abstention import (
    change_over_k,
    detect_abstention,
    detector_agreement,
    published_change_over_k,
    with_uncertainty,
)

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


def test_agreement_is_cohens_kappa_of_a_table_worked_by_hand() -> None:
    row = detector_agreement(table(MIXED)).iloc[0]
    assert row[["both", "only_flag", "only_phrase", "neither"]].tolist() == [2, 1, 1, 4]
    # observed 6/8, by chance (3 · 3 + 5 · 5) / 64 = 34/64: (48/64 − 34/64) / (30/64) = 14/30
    assert row["kappa"] == pytest.approx(14 / 30)
    assert row["kappa"] == pytest.approx(
        cohen_kappa_score([1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0])
    )
    assert row["ci_low"] < row["kappa"] < row["ci_high"]
    assert (row["n"], row["n_failed"]) == (8, 0)


def test_agreement_leaves_out_answers_without_a_verdict_and_counts_them() -> None:
    row = detector_agreement(table([*MIXED, (DECLINES, "", math.nan)])).iloc[0]
    assert row["kappa"] == pytest.approx(14 / 30)
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
    row = detector_agreement(table([MIXED[0], MIXED[4]] * 4)).iloc[0]
    assert row["kappa"] == 1
    assert math.isnan(row["ci_low"])
    assert math.isnan(
        detector_agreement(table([MIXED[4]] * 4)).iloc[0]["kappa"]
    )  # nobody declined: nothing to agree on


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
    return pd.DataFrame(
        [
            ("m", setting, k, f"q{i}", f"s{i}", value)
            for (setting, k), values in rates.items()
            for i, value in enumerate(values)
        ],
        columns=["model", "setting", "k", "query_id", "group", "value"],
    )


def test_the_change_is_from_smallest_to_largest_k_of_a_setting_on_the_same_queries() -> None:
    values = over_k(
        {
            ("zero_shot", 0): [1, 1, 1],
            ("top_k", 1): [1, 1, 0],
            ("top_k", 3): [0, 0, 0],
            ("top_k", 20): [0, 1, math.nan],
            ("one_in_k", 3): [0, 0.5, 0],
            ("one_in_k", 5): [1, 1, 0],
        }
    )
    change = change_over_k(values).set_index(["setting", "ks"])
    assert set(change.index) == {
        ("top_k", "1 to 20"),
        ("one_in_k", "3 to 5"),
    }  # zero-shot has one k only
    assert change.loc[("top_k", "1 to 20"), ["value", "n"]].tolist() == [
        -0.5,
        2,
    ]  # −1, 0; the third has no answer at 20
    assert change.loc[("one_in_k", "3 to 5"), ["value", "n"]].tolist() == [0.5, 3]  # 1, 0.5, 0


def test_without_several_k_there_is_no_change() -> None:
    assert change_over_k(over_k({("zero_shot", 0): [1, 0]})).empty


def test_the_papers_change_is_that_of_its_table_8() -> None:
    change = published_change_over_k(with_uncertainty(published("visual_rag", table=8))).set_index(
        ["model", "setting"]
    )
    assert change.loc[("GPT-4o", "top_k"), "value"] == pytest.approx(10.70 - 58.02)
    assert (
        change.loc[("Pixtral", "one_in_k"), "ks"] == "3 to 15"
    )  # the paper shows it at most 15 images
    assert len(change) == 16


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
