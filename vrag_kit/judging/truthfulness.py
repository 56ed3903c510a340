"""Truthfulness: a right answer earns 1, a missing one 0, a wrong one costs 1; and what
needs no judge to be told.
"""

from __future__ import annotations

from collections.abc import Callable

from vrag_kit.judging.rubric import Verdict
from vrag_kit.judging.scale import TRUTH
from vrag_kit.types import Query

EQUAL = "equal"
"""The mark of an answer that is the accepted one, letter for letter."""
Declines = Callable[[str], bool]
"""Whether an answer says that it does not know."""


def settled(query: Query, answer: str, declines: Declines) -> Verdict | None:
    """The verdict of an answer that no judge has to read: one that declines is missing
    (mark "abstention"), one that equals an accepted answer but for case and white space
    at its ends is right (mark "equal"); None for all others.

    Where the accepted answer itself declines, an answer equal to it is right, once.
    """
    said = _plain(answer)
    if said in map(_plain, query.answers):
        return Verdict(TRUTH.best, frozenset({EQUAL}))
    if declines(answer):
        return Verdict(TRUTH.nothing, frozenset({"abstention"}))
    return None


def right_or_wrong(right: bool, marks: frozenset[str] = frozenset()) -> Verdict:
    """The verdict of an answer that was given."""
    return Verdict(TRUTH.best if right else TRUTH.worst, marks)


def _plain(text: str) -> str:
    return text.strip().lower()
