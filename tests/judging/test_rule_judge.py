"""The rule judge against answers labelled by hand, and what declining looks like."""

from __future__ import annotations

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


ABSTENTIONS = (
    "I don’t know.",
    "It cannot be determined from the image.",
    "Not enough information",
    "idk",
    "I am not able to tell",
    "The wings are not visible in this picture.",
    "I cannot decide",
)
ANSWERS = ("The hindwings are not red but blue", "no", "It is known to be green")


def test_an_abstention_is_recognised() -> None:
    assert [text for text in (*ABSTENTIONS, *ANSWERS) if is_abstention(text)] == [*ABSTENTIONS]
