"""What the text of CRAG-MM says of results, as data: a difference between two settings or
slices, and the range in which the sentence puts it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.papers.claim_rows import Range
from vrag_kit.papers.published import published


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of the paper, in our words, and how to look it up."""

    name: str
    section: str
    table: int
    """Where its numbers are printed; 0 where only in figures without labels."""
    notebook: str
    """The number of the notebook whose differences it can be looked up in."""
    says: str
    metric: str
    setting: str
    baseline: str
    """The number is the metric in `setting` less that in this one, in points."""
    low: float = -math.inf
    high: float = math.inf
    of: tuple[str, ...] = ()
    """It is about any model."""

    @property
    def range(self) -> Range:
        """Where it holds."""
        return Range(self.low, self.high)

    @property
    def expected(self) -> str:
        """The range in words."""
        return str(self.range)

    @property
    def measured(self) -> tuple[str, str]:
        """What its number is, and the unit."""
        return f"difference in {self.metric}", "points"

    def printed(self) -> list[str]:
        """The verdicts of the paper's own numbers, one a model; they have no interval."""
        if not self.table:
            return []
        table = published("crag_mm", self.table)
        table = table[table["metric"] == self.metric]
        values = table.pivot(index="model", columns="task", values="value")
        numbers = (values[self.setting] - values[self.baseline]).round(2)
        return [self.range.verdict(value, value, value) for value in numbers]


STATEMENTS = tuple(
    Statement(**entry)
    for entry in json.loads(Path(__file__).with_name("statements.json").read_text(encoding="utf-8"))
)
"""In the order of the paper."""
