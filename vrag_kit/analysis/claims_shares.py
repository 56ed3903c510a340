"""Shares of claims and items by verdicts of which some are unknown, and which are then
left out and counted; the two families of metrics have them in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vrag_kit.analysis.claims import Label, Row
from vrag_kit.judging.claims import Relation

Truth = bool | None
"""Whether something holds; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class Share:
    """A metric of one answer."""

    value: float
    """In [0, 1], a difference of two in [−1, 1]; NaN where there is nothing to tell it
    from.
    """
    n: int = 0
    """Claims or items that it is a share of."""
    unknown: int = 0
    """Claims or items left out because a verdict on them is missing."""


NOTHING = Share(math.nan)


def is_(relation: Relation, label: Label) -> Truth:
    """Whether a verdict is this relation."""
    return None if label is None else label is relation


def some(truths: Iterable[Truth]) -> Truth:
    """Whether one of them holds; unknown where any of them is, whatever the others say.
    To call it known where another one holds would select on what is measured.
    """
    found = set(truths)
    return None if None in found else True in found


def some_entails(row: Row, places: Sequence[int]) -> Truth:
    """Whether one of the labels at these places is ENTAILMENT."""
    return some(is_(Relation.ENTAILMENT, row[place]) for place in places)


def share(truths: Sequence[Truth]) -> Share:
    """How large a part of those that are known holds; NaN without any."""
    known = [truth for truth in truths if truth is not None]
    unknown = len(truths) - len(known)
    if not known:
        return Share(math.nan, 0, unknown)
    return Share(sum(known) / len(known), len(known), unknown)


def gap(first: Share, second: Share) -> Share:
    """The first less the second; NaN where either is missing."""
    unknown = first.unknown + second.unknown
    return Share(first.value - second.value, first.n + second.n, unknown)
