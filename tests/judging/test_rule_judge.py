"""The rule judge against answers labelled by hand, and what declining looks like."""

from __future__ import annotations

import pytest
from factories import read_data

from vrag_kit.judging import RuleJudge, is_abstention
from vrag_kit.types import Query


def query(text: str, *answers: str) -> Query:
    return Query(query_id="q", text=text, answers=answers)


def test_the_rule_judge_agrees_with_the_labels() -> None:
    for row in read_data("labelled_answers.csv"):
        asked = query(row["question"], *row["accepted"].split("|"))
        verdict = RuleJudge().verdict(asked, row["answer"])
        expected = (float(row["score"]), frozenset(row["marks"].split()))
        assert (verdict.score, verdict.marks) == expected, row


@pytest.mark.parametrize(
    ("text", "declines"),
    [
        ("I don’t know.", True),
        ("It cannot be determined from the image.", True),
        ("Not enough information", True),
        ("idk", True),
        ("I am not able to tell", True),
        ("The wings are not visible in this picture.", True),
        ("I cannot decide", True),
        ("The hindwings are not red but blue", False),
        ("no", False),
        ("It is known to be green", False),
    ],
)
def test_declining_is_recognised(text: str, declines: bool) -> None:
    assert is_abstention(text) == declines
