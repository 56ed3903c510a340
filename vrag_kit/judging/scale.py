"""The scale of a judge: what the worst and the best answer earn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from vrag_kit.errors import VragError


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of a scale: [0, 1] for shares and the rubric, [−1, 1] for truthfulness."""

    worst: float
    best: float

    def __post_init__(self) -> None:
        """Raises `VragError` unless worst is less than best."""
        if not -math.inf < self.worst < self.best < math.inf:
            raise VragError(f"a scale from {self.worst} to {self.best}: expected worst < best.")

    @property
    def width(self) -> float:
        """How far apart the ends lie: the largest difference of two scores."""
        return self.best - self.worst

    @property
    def differences(self) -> Scale:
        """The scale of the difference of two scores."""
        return Scale(-self.width, self.width)

    @property
    def middle(self) -> float:
        """Half way between the ends."""
        return (self.worst + self.best) / 2

    @property
    def nothing(self) -> float:
        """What an answer earns that neither gains nor costs: 0, or the end next to it."""
        return min(max(0.0, self.worst), self.best)

    @property
    def signed(self) -> bool:
        """Whether a wrong answer costs what a right one earns, as in truthfulness."""
        return self.middle == 0

    def brought_to(self, other: Scale, score: float) -> float:
        """A score of this scale on another: worst to worst, best to best, and evenly
        between; (score − worst) / (best − worst) on that of shares.
        """
        if self == other:
            return score
        return other.worst + other.width * ((score - self.worst) / self.width)


SHARES = Scale(0.0, 1.0)
"""The scale of shares, and of what no judge scored."""
TRUTH = Scale(-1.0, 1.0)
"""From wrong to right; an answer that is missing earns 0."""


def scale_of(table: pd.DataFrame) -> Scale:
    """The scale of a table's scores, from its columns worst and best, which `judge_all`
    writes; `SHARES` where there are none, or no rows.

    Raises `VragError` when rows are on different scales, whose means would mean nothing.
    """
    if "worst" not in table or table.empty:
        return SHARES
    worst, best = float(table["worst"].iloc[0]), float(table["best"].iloc[0])
    if not ((table["worst"] == worst).all() and (table["best"] == best).all()):
        ends = table[["worst", "best"]].drop_duplicates()
        found = " and ".join(f"[{row.worst:g}, {row.best:g}]" for row in ends.itertuples())
        raise VragError(
            f"the scores of one table are on different scales: {found}. Judge all its answers by"
            " judges of one scale, or take the tables apart."
        )
    return Scale(worst, best)
