"""Shares of claims and items by verdict. Unknown verdicts are left out and counted, in both
families of metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vrag_kit.analysis.claims import Label, VerdictRow
from vrag_kit.judging.claims import EntailmentLabel

Truth = bool | None
"""Whether something holds; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a metric for one answer."""

    value: float
    """In [0, 1], a difference of two in [−1, 1]; NaN where it is undefined."""
    n: int = 0
    """Claims or items that it is a share of."""
    unknown: int = 0
    """Claims or items left out because a verdict on them is missing."""


NOTHING = MetricValue(math.nan)


def has_label(relation: EntailmentLabel, label: Label) -> Truth:
    """Whether a verdict has this label; None where it is unknown."""
    return None if label is None else label is relation


def any_true(truths: Iterable[Truth]) -> Truth:
    """Whether one of them is true; unknown where any of them is, whatever the others are. Calling
    it known where another one is true would select on the outcome.
    """
    found = set(truths)
    return None if None in found else True in found


def any_entails(row: VerdictRow, places: Sequence[int]) -> Truth:
    """Whether one of the labels at these positions is ENTAILMENT."""
    return any_true(has_label(EntailmentLabel.ENTAILMENT, row[place]) for place in places)


def share(truths: Sequence[Truth]) -> MetricValue:
    """The share of true values among the known ones; NaN without any."""
    known = [truth for truth in truths if truth is not None]
    unknown = len(truths) - len(known)
    if not known:
        return MetricValue(math.nan, 0, unknown)
    return MetricValue(sum(known) / len(known), len(known), unknown)


def difference(first: MetricValue, second: MetricValue) -> MetricValue:
    """The first minus the second; NaN where either is missing."""
    unknown = first.unknown + second.unknown
    return MetricValue(first.value - second.value, first.n + second.n, unknown)
