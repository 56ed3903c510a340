"""Rubric for free-text short answers, for the judge of a data set without its own metric. It is
ours: the paper reports "EM/Accuracy" and gives none.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from vrag_kit.judging import SHARES, Rubric, UnparsedError, Verdict
from vrag_kit.judging.rubric import one_line
from vrag_kit.types import Query

_WORDS = json.loads((Path(__file__).parent / "short_answers.json").read_text(encoding="utf-8"))
_GRADES = {"CORRECT": 1.0, "PARTIAL": 0.5, "INCORRECT": 0.0, "NO ANSWER": 0.0}
"""Grade → score."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_GRADE = re.compile(r"grade[\s*_\"'“”]*:(.*)", re.IGNORECASE)
_ROUND = " \t*_`\"'“”.!"


def _fields(query: Query, answer: str) -> dict[str, str]:
    """Each on one line; the accepted answers are a JSON list."""
    references = json.dumps(list(query.answers), ensure_ascii=False)
    fields = {"question": query.text, "references": references, "answer": answer}
    return {name: one_line(text) for name, text in fields.items()}


def read_grade(raw: str) -> Verdict:
    """Parses a verdict whose last line is "Grade: CORRECT", PARTIAL, INCORRECT or NO ANSWER (mark
    "abstention").

    Bold type, quotes, and thoughts in <think> tags are ignored. Raises `UnparsedError` if the last
    line gives no grade or an unknown one, and if two lines differ.
    """
    lines = [line.strip(_ROUND) for line in _THOUGHT.sub("\n", raw).splitlines()]
    lines = [line for line in lines if line]
    grades = [found[1].strip(_ROUND).upper() for line in lines if (found := _GRADE.match(line))]
    if not grades or not _GRADE.match(lines[-1]):
        raise UnparsedError("the last line is no grade")
    if odd := [grade for grade in grades if grade not in _GRADES]:
        raise UnparsedError(f"“{odd[0][:30]}” is none of {', '.join(_GRADES)}")
    if len(set(grades)) > 1:
        raise UnparsedError(f"it gives the grades {' and '.join(dict.fromkeys(grades))}")
    marks = {"abstention"} if grades[-1] == "NO ANSWER" else set()
    return Verdict(_GRADES[grades[-1]], frozenset(marks))


SHORT_ANSWERS = Rubric(
    scale=SHARES,
    template="\n".join([*_WORDS["task"], "", _WORDS["case"]]),
    fields=_fields,
    read=read_grade,
    repair=_WORDS["repair"],
)
"""The rubric: scores 1, 0.5 and 0, with the mark "abstention"."""
