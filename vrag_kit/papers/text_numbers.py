"""Checks of the numbers in a paper's text against its tables, shared by all audits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from vrag_kit.papers.audit import AGREES, CONTRADICTS, ROUNDED, Tolerance, audit_rows


@dataclass(frozen=True, slots=True)
class TextNumber:
    """A number in a paper's text and the value that the paper's tables give for it."""

    name: str
    section: str
    table: int | str
    says: str
    printed: float
    found: float
    unit: float = 1.0
    """Unit of the last digit published in the text."""
    above: bool = False
    """Whether the text says that the value exceeds this number."""
    rounded_first: bool = False
    """Whether the value is a difference of numbers that were rounded before."""

    def holds(self, within: float) -> bool:
        """Whether text and tables agree within `within`; with `above`, whether the tables' value is
        larger.
        """
        if self.above:
            return self.found > self.printed
        return abs(self.printed - self.found) <= within


TextNumberRow = tuple[str, str, int | str, str, float, float]
"""The first fields of a `TextNumber`: name, section, table, says, printed, found."""


def collect_text_numbers(rows: Iterable[TextNumberRow], *, unit: float = 1.0) -> list[TextNumber]:
    """Builds a `TextNumber` from each row, all with the same `unit`."""
    return [TextNumber(*each, unit) for each in rows]


def check_text_numbers(claims: Iterable[TextNumber]) -> Iterator[pd.DataFrame]:
    """Yields one row of an audit (`audit_rows`) for each number of the text, checked against the
    tables. The note has the section and the sentence.
    """
    for claim in claims:
        allowed = Tolerance(claim.unit / 2 + 1e-4)
        row = audit_rows(
            "text vs. tables", claim.table, [claim.name], claim.printed, [claim.found], allowed
        )
        finding = AGREES if claim.holds(allowed.exact) else CONTRADICTS
        if finding == CONTRADICTS and claim.rounded_first:
            finding = ROUNDED
        yield row.assign(finding=finding, note=f"section {claim.section}: {claim.says}")
