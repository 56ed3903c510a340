"""Numbers that the text of a paper tells, beside what its tables give; the audits' in
common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from vrag_kit.papers.audit_rows import AGREES, CONTRADICTS, ROUNDED, Allowed, rows_of


@dataclass(frozen=True, slots=True)
class Claim:
    """A number of the text beside the one that the tables give."""

    name: str
    section: str
    table: int | str
    says: str
    printed: float
    found: float
    unit: float = 1.0
    """Of the last digit that the text prints."""
    above: bool = False
    """Whether the text says that it is more than that."""
    rounded_first: bool = False
    """Whether it follows from numbers that are rounded before they are subtracted."""

    def holds(self, within: float) -> bool:
        """Whether the two are equal to the last printed digit, or the found one is above
        the printed where the text says so.
        """
        if self.above:
            return self.found > self.printed
        return abs(self.printed - self.found) <= within


Told = tuple[str, str, int | str, str, float, float]
"""A claim in short: name, section, table, says, printed, found."""


def told_claims(told: Iterable[Told], *, unit: float = 1.0) -> list[Claim]:
    """Claims that differ in nothing else; `unit` as that of a `Claim`."""
    return [Claim(*each, unit) for each in told]


def text_against_tables(claims: Iterable[Claim]) -> Iterator[pd.DataFrame]:
    """The rows of an audit (`rows_of`) that hold what a text says against its tables, one
    a claim; the note has its section and words.
    """
    for claim in claims:
        allowed = Allowed(claim.unit / 2 + 1e-4)
        row = rows_of(
            "text against tables", claim.table, [claim.name], claim.printed, [claim.found], allowed
        )
        finding = AGREES if claim.holds(allowed.exact) else CONTRADICTS
        if finding == CONTRADICTS and claim.rounded_first:
            finding = ROUNDED
        yield row.assign(finding=finding, note=f"section {claim.section}: {claim.says}")
