"""Read a judge's words as a verdict in the form of the paper's rubric (Table 12), strictly: what does not follow the form is unreadable, never a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

MARKS = {"likely hallucination": "hallucination", "redundant": "redundant", "no answer": "abstention"}
"""The rubric's marks, in lower case → the kit's."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge decided."""

    score: float
    """In [0, 1]."""
    marks: frozenset[str]
    """Of "hallucination", "redundant", "abstention"."""


class Unreadable(ValueError):
    """Why a judge's words are no verdict."""


def read_verdict(raw: str) -> Verdict:
    """The verdict in `raw`: its one line "Score: 0.5 | Likely Hallucination | (Explanation: …)".

    Bold type and lines without a score around it are let pass. Raises `Unreadable` with the reason when there is no such line or several that differ,
    the score is no number in [0, 1], a mark is unknown, or "No Answer" comes with a score above 0.
    """
    lines = [line.strip().strip("*`“”\"' ") for line in raw.splitlines()]
    found = {line for line in lines if re.match(r"score\b", line, re.IGNORECASE)}
    if not found:
        raise Unreadable("there is no line that begins with “Score:”")
    verdicts = {_line(line) for line in found}
    if len(verdicts) > 1:
        raise Unreadable("there are several scores")
    return verdicts.pop()


def _line(line: str) -> Verdict:
    rest = re.sub(r"^score\s*(?:\*\*)?\s*:\s*(?:\*\*)?\s*", "", line, flags=re.IGNORECASE)
    head, *explanation = re.split(r"\(", rest, maxsplit=1)
    score, *marks = (piece.strip().strip("*").strip() for piece in head.rstrip(" |*.").split("|"))
    if not _NUMBER.fullmatch(score) or not 0 <= float(score) <= 1:
        raise Unreadable(f"“{score[:30]}” is no score from 0 to 1")
    if unknown := [mark for mark in marks if mark.lower() not in MARKS]:
        raise Unreadable(f"“{unknown[0][:30]}” is none of the marks")
    read = frozenset(MARKS[mark.lower()] for mark in marks)
    if "abstention" in read and float(score) > 0:
        raise Unreadable("“No Answer” has a score above 0")
    if explanation and re.search(r"\|\s*(?:" + "|".join(MARKS) + r")\s*$", explanation[0], re.IGNORECASE):
        raise Unreadable("a mark stands behind the explanation")
    return Verdict(float(score), read)


def label_of(score: float, marks: frozenset[str]) -> str:
    """A verdict in a word."""
    return "no answer" if "abstention" in marks else "correct" if score == 1 else "incorrect" if score == 0 else "partial"
