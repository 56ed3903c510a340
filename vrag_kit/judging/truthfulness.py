"""Truthfulness: a correct answer scores 1, a missing one 0, an incorrect one −1.
Some answers need no judge.
"""

from __future__ import annotations

from collections.abc import Callable

from vrag_kit.judging.rubric import Verdict
from vrag_kit.judging.scale import TRUTH
from vrag_kit.types import Query

EQUAL = "equal"
"""Mark of an answer that equals an accepted one, ignoring case."""
Declines = Callable[[str], bool]
"""Whether an answer abstains."""


def precheck(query: Query, answer: str, declines: Declines) -> Verdict | None:
    """Return the verdict of an answer that needs no judge; None for all others.
    One that abstains is missing (mark "abstention"). One that equals an accepted answer, ignoring
    case and white space at its ends, is correct (mark "equal").

    Where the accepted answer itself abstains, an equal answer is correct.
    """
    said = _plain(answer)
    if said in map(_plain, query.answers):
        return Verdict(TRUTH.best, frozenset({EQUAL}))
    if declines(answer):
        return Verdict(TRUTH.nothing, frozenset({"abstention"}))
    return None


def truth_verdict(right: bool, marks: frozenset[str] = frozenset()) -> Verdict:
    """Return the verdict of an answer that is not missing."""
    return Verdict(TRUTH.best if right else TRUTH.worst, marks)


def _plain(text: str) -> str:
    return text.strip().lower()
