"""The rule judge against answers labelled by hand, and what declining looks like."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.judging import RuleJudge, is_abstention, judge_answers
from vrag_kit.types import Query

LABELLED = list(
    csv.DictReader((Path(__file__).parent / "data" / "labelled_answers.csv").open(encoding="utf-8"))
)


def query(text: str, *answers: str) -> Query:
    return Query(query_id="q", text=text, answers=answers)


@pytest.mark.parametrize(
    "row",
    LABELLED,
    ids=[f"{number}-{row['answer'][:30]}" for number, row in enumerate(LABELLED, start=2)],
)
def test_the_rule_judge_agrees_with_the_labels(row: dict[str, str]) -> None:
    verdict = RuleJudge().verdict(
        query(row["question"], *row["accepted"].split("|")), row["answer"]
    )
    assert (verdict.score, verdict.marks) == (float(row["score"]), frozenset(row["marks"].split()))


def test_a_verdict_reads_as_in_the_rubric() -> None:
    verdict = RuleJudge().verdict(
        query("Which two colors?", "black and white"), "black and white with yellow"
    )
    assert (verdict.raw, verdict.score) == ("Score: 0.5 | Likely Hallucination", 0.5)
    assert (
        RuleJudge().verdict(query("Which color?", "black"), "I don't know").raw
        == "Score: 0 | No Answer"
    )


def test_a_query_whose_answers_are_hidden_gets_no_score() -> None:
    verdict = RuleJudge().verdict(query("Which color?"), "black")
    assert verdict.score is None
    assert str(verdict.failure) == "error: query 'q' has no accepted answer to compare with"


@given(st.text(max_size=60))
def test_any_words_get_a_score_between_0_and_1(answer: str) -> None:
    verdict = RuleJudge().verdict(
        query("What color are the feet?", "black", "dark gray (legs pink)"), answer
    )
    assert verdict.failure is None
    assert 0 <= verdict.score <= 1


@given(st.permutations(["purple", "gray and red", "plain"]))
def test_the_order_of_accepted_answers_does_not_matter(accepted: list[str]) -> None:
    assert RuleJudge().verdict(query("What color?", *accepted), "red, gray").score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "I don't know",
        "I don’t know.",
        "It cannot be determined from the image.",
        "Not enough information",
        "idk",
        "There isn't enough information",
        "I am not able to tell",
        "I can't identify it",
        "It cannot be clearly seen",
        "The wings are not visible in this picture.",
        "Unable to tell",
        "I cannot decide",
    ],
)
def test_declining_is_recognised(text: str) -> None:
    assert is_abstention(text)


@pytest.mark.parametrize(
    "text",
    ["red", "The hindwings are not red but blue", "No pattern", "no", "It is known to be green"],
)
def test_an_answer_is_not_taken_for_declining(text: str) -> None:
    assert not is_abstention(text)


def test_failures_get_no_score_and_never_zero(write_annotations, tree: Path) -> None:
    benchmark = load_visual_rag(write_annotations({}), tree)
    (query_id,) = benchmark.queries
    answers = pd.DataFrame(
        {
            "query_id": [query_id] * 3,
            "answer": ["black", None, "I don't know"],
            "status": ["ok", "timeout", "ok"],
            "detail": "",
            "answer_id": list("abc"),
        }
    )
    judged = judge_answers(RuleJudge(), benchmark, answers)
    np.testing.assert_array_equal(judged["score"], [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(judged["abstained"], [0.0, np.nan, 1.0])
    assert list(judged["verdict"]) == ["Score: 1", "timeout", "Score: 0 | No Answer"]
