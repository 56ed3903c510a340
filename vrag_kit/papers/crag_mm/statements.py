"""Statements of the CRAG-MM paper about results, as data: a difference between two settings or
slices, and its expected range.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.papers.published import published
from vrag_kit.papers.statements import ExpectedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of the paper, paraphrased, and how to compute its number."""

    name: str
    section: str
    table: int
    """Table with its numbers; 0 if they are only in figures without labels."""
    notebook: str
    """Number of the notebook whose differences can test it."""
    says: str
    metric: str
    setting: str
    baseline: str
    """Setting that is subtracted: the number is the difference of the metric, in points."""
    low: float = -math.inf
    high: float = math.inf
    of: tuple[str, ...] = ()
    """Models that it is about; () for any model."""

    @property
    def range(self) -> ExpectedRange:
        """The expected range."""
        return ExpectedRange(self.low, self.high)

    @property
    def expected(self) -> str:
        """The expected range as text."""
        return str(self.range)

    @property
    def measured(self) -> tuple[str, str]:
        """Metric of its number, and the unit."""
        return f"difference in {self.metric}", "points"

    def published_verdicts(self) -> list[str]:
        """Returns the verdicts on the paper's own numbers, one per model, without intervals."""
        if not self.table:
            return []
        table = published("crag_mm", self.table)
        table = table[table["metric"] == self.metric]
        values = table.pivot(index="model", columns="setting", values="value")
        numbers = (values[self.setting] - values[self.baseline]).round(2)
        return [self.range.verdict(value, value, value) for value in numbers]


STATEMENTS = tuple(
    Statement(**entry)
    for entry in json.loads(Path(__file__).with_name("statements.json").read_text(encoding="utf-8"))
)
"""The statements, in the order of the paper."""
