"""The paper's rubric (Table 12): the judge's prompt, and the parser of its verdicts."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.judging.rubric import Rubric, one_line
from vrag_kit.judging.scale import SHARES
from vrag_kit.papers.visual_rag.verdicts import read_verdict
from vrag_kit.types import Query

PAPER_JUDGE = "o4-mini@openai"
"""The paper's judge (section 5.1)."""
_WORDS = json.loads((Path(__file__).parent / "rubric.json").read_text(encoding="utf-8"))
"""Texts of the rubric, verbatim, with their source; our additions are marked in the file."""


def _template() -> str:
    """Rubric, examples, then question, reference answers and the answer."""
    examples = [*_WORDS["examples"], *_WORDS["examples_ours"]["examples"]]
    shown = [_example(each["question"], each["reference"], each["answers"]) for each in examples]
    last = (
        f"{_WORDS['closing']}\n{_case('{question}', '{references}')}\n\nStudent Answer: {{answer}}"
    )
    return "\n\n".join([*_WORDS["rubric"], _WORDS["opening"], *shown, last])


def _example(question: str, reference: str | list[str], answers: list[tuple[str, str]]) -> str:
    """A question with answers and their verdicts."""
    judged = [f"Student Answer: {student}\n{verdict}" for student, verdict in answers]
    return "\n\n".join([_case(question, reference), *judged])


def _case(question: str, reference: str | list[str]) -> str:
    return f"Question: {question}\nReference Answer: {reference}"


def _fields(query: Query, answer: str) -> dict[str, str]:
    """Several references are written as a list; the answer is on one line."""
    references = query.answers[0] if len(query.answers) == 1 else str(list(query.answers))
    return {"question": query.text, "references": references, "answer": one_line(answer)}


RUBRIC = Rubric(
    scale=SHARES,
    template=_template(),
    fields=_fields,
    read=read_verdict,
    repair=_WORDS["repair"]["text"],
)
"""The rubric: scores from 0 to 1, with the marks "hallucination", "redundant" and "abstention"."""
