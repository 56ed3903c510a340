"""The paper's rubric (Table 12): the judge's prompt, and the parser of its verdicts."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.judging.rubric import Rubric
from vrag_kit.judging.scale import Scale
from vrag_kit.papers.visual_rag.verdicts import read_verdict
from vrag_kit.types import Message, Prompt, Query

PAPER_JUDGE = "o4-mini@openai"
"""The paper's judge (section 5.1)."""
_WORDS = json.loads((Path(__file__).parent / "rubric.json").read_text(encoding="utf-8"))
"""Texts of the rubric, verbatim, with their source; our additions are marked in the file."""


def judge_prompt(query: Query, answer: str) -> Prompt:
    """Builds the judge's prompt for one answer: rubric, examples, then question, reference answers
    (a list if there are several) and the answer on one line.
    """
    reference = query.answers[0] if len(query.answers) == 1 else list(query.answers)
    case, said = _case(query.text, reference), " ".join(answer.split())
    last = f"{_WORDS['closing']}\n{case}\n\nStudent Answer: {said}"
    examples = [*_WORDS["examples"], *_WORDS["examples_ours"]["examples"]]
    shown = [_example(each["question"], each["reference"], each["answers"]) for each in examples]
    text = "\n\n".join([*_WORDS["rubric"], _WORDS["opening"], *shown, last])
    return (Message(role="user", parts=(text,)),)


def _example(question: str, reference: str | list[str], answers: list[tuple[str, str]]) -> str:
    """A question with answers and their verdicts."""
    judged = [f"Student Answer: {student}\n{verdict}" for student, verdict in answers]
    return "\n\n".join([_case(question, reference), *judged])


def _case(question: str, reference: str | list[str]) -> str:
    return f"Question: {question}\nReference Answer: {reference}"


def _repair(reason: str) -> str:
    return str(_WORDS["repair"]["text"]).format(reason=reason)


RUBRIC = Rubric(scale=Scale(0.0, 1.0), prompt=judge_prompt, read=read_verdict, repair=_repair)
"""The rubric: scores from 0 to 1, with the marks "hallucination", "redundant" and "abstention"."""
