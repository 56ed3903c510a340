"""The rows of a paper's audit: a printed number beside the one that was computed again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

CELL = ["model", "setting", "k"]
AGREES = "agrees"
ROUNDED = "consistent with rounding"
NOT_COMPARABLE = "not comparable"
CONTRADICTS = "contradicts"
FINDINGS = (AGREES, ROUNDED, NOT_COMPARABLE, CONTRADICTS)
"""What a check can find.

Two numbers agree to the last printed digit; or they differ by no more than the rounding
of what the one is computed from; or they are no two statements about the same, as one
of them is not printed or rests on other queries; or they contradict each other.
"""


@dataclass(frozen=True, slots=True)
class Allowed:
    """How far a recomputed number may be from the printed one."""

    exact: float
    """They agree: half a unit of the last printed digit, and a hair."""
    rounding: float = 0.0
    """They still may: what rounding of the numbers that went in can add to that."""


SAME = Allowed(1e-9)
LAST_DIGIT = Allowed(0.0051)
ROUNDING = {"avg": Allowed(0.0051, 0.0101), "std": Allowed(0.0006, 0.0062)}
"""For the five printed runs of a cell. A mean moves by up to 0.005 with them, a
deviation (n − 1) by up to 0.005 · √(5/4).
"""
_PARTS = ("retriever", "model", "setting", "m", "k", "modality", "scenario")


def rows_of(
    check: str,
    table: int | str,
    where: pd.DataFrame | Sequence[str],
    printed: object,
    recomputed: object,
    allowed: Allowed,
) -> pd.DataFrame:
    """Rows of the audit, one for each row of a table or each name in `where`; the other
    columns are of that length, or one value for all: check, table, where, printed,
    recomputed, tolerance, finding (one of `FINDINGS`) and an empty note.
    """
    names = places(where) if isinstance(where, pd.DataFrame) else list(where)
    rows = pd.DataFrame(
        {
            "check": check,
            "table": str(table),
            "where": names,
            "printed": np.asarray(printed, float),
            "recomputed": np.asarray(recomputed, float),
            "tolerance": max(allowed.exact, allowed.rounding),
        },
        index=range(len(names)),
    )
    apart = (rows["printed"] - rows["recomputed"]).abs()
    finding = np.select(
        [apart <= allowed.exact, apart <= allowed.rounding, rows["printed"].isna()],
        [AGREES, ROUNDED, NOT_COMPARABLE],
        CONTRADICTS,
    )
    return rows.assign(finding=finding, note="")


def places(cells: pd.DataFrame) -> list[str]:
    """The place of each row in words: "Phi4-MM, one_in_k, k=10"."""
    parts = [part for part in _PARTS if part in cells]
    return [", ".join(_words(row)) for row in cells[parts].to_dict("records")]


def _words(row: Mapping[Hashable, Any]) -> list[str]:  # a row of a table: any values
    given = {str(part): value for part, value in row.items() if pd.notna(value)}
    return [f"{part}={value:g}" if part in "mk" else str(value) for part, value in given.items()]


def contradictions(checks: pd.DataFrame) -> pd.DataFrame:
    """The rows of an audit in which printed numbers contradict each other."""
    return checks[checks["finding"] == CONTRADICTS]


def audit_summary(checks: pd.DataFrame) -> pd.DataFrame:
    """An audit in numbers: rows the checks, columns tables, and how often each of
    `FINDINGS` was found.
    """
    by_check = checks.groupby("check", sort=False)
    tables = by_check["table"].agg(lambda names: "; ".join(dict.fromkeys(names)))
    counts = by_check["finding"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(index=tables.index, columns=list(FINDINGS), fill_value=0)
    return pd.concat([tables.rename("tables"), counts], axis=1)
