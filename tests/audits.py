"""What tests of the papers' audits read off them, and tables with a planted error."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.papers.audit import FINDINGS

Tables = Mapping[int | str, pd.DataFrame]


def found(
    checks: pd.DataFrame, check: str, *, digits: int
) -> dict[tuple[str, str], tuple[float, float]]:
    """The contradictions of one check: (table, cell) → (reported, recomputed to `digits`)."""
    rows = checks.query("finding == 'contradicts' and check == @check")
    told = {}
    for row in rows.itertuples():
        told[row.table, row.cell] = (row.reported, round(row.recomputed, digits))
    return told


def with_error(
    tables: Tables, number: int, place: int, *, column: str = "value", error: float
) -> dict[int | str, pd.DataFrame]:
    """The tables, one printed number of which is larger by `error`."""
    table = tables[number].copy()
    table.loc[place, column] += error
    return {**tables, number: table}


def summary(checks: pd.DataFrame) -> pd.DataFrame:
    """The number of each finding, in the order of `FINDINGS`, of each check."""
    counts = pd.crosstab(checks["check"], checks["finding"])
    return counts.reindex(index=checks["check"].unique(), columns=list(FINDINGS), fill_value=0)
