"""What a language model is asked as judge, and how its words become a verdict: a
protocol's wording, passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vrag_kit.judging.scale import Scale
from vrag_kit.types import Prompt, Query


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge decided."""

    score: float
    """On the rubric's scale."""
    marks: frozenset[str] = frozenset()
    """Remarks such as "hallucination", "redundant", "abstention"."""


def settles_nothing(query: Query, answer: str) -> Verdict | None:
    """None: every answer is for the judge to read."""
    return None


class Unreadable(ValueError):
    """Why a judge's words are no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a model judges an answer; see `vrag_kit.papers` for those of papers."""

    scale: Scale
    """What the worst and the best answer earn."""
    prompt: Callable[[Query, str], Prompt]
    """What the judge is asked about a query and an answer to it."""
    read: Callable[[str], Verdict]
    """The verdict in the judge's words; raises `Unreadable` with the reason."""
    repair: Callable[[str], str]
    """What is asked once more when a verdict cannot be read, for that reason."""
    settles: Callable[[Query, str], Verdict | None] = settles_nothing
    """The verdict of an answer that needs no judge; None for those that do."""


def label_of(verdict: Verdict, scale: Scale) -> str:
    """A verdict in a word: "no answer", "correct", "incorrect", or "partial" between the
    ends of the scale.
    """
    if "abstention" in verdict.marks:
        return "no answer"
    ends = {scale.best: "correct", scale.worst: "incorrect"}
    return ends.get(verdict.score, "partial")
