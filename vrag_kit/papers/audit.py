"""Rows of a paper's audit: a published number and its recomputed value."""

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
"""Possible findings of a check.

Two numbers agree to the last published digit; or differ by no more than the rounding of the inputs
allows; or are not comparable, as one is not published or is based on other queries; or they
contradict each other.
"""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Largest allowed difference between a recomputed and a published number."""

    exact: float
    """Limit for agreement: half a unit of the last published digit, plus a small margin."""
    rounding: float = 0.0
    """Limit for being consistent with the rounding of the inputs."""


SAME = Tolerance(1e-9)
LAST_DIGIT = Tolerance(0.0051)
ROUNDING = {"avg": Tolerance(0.0051, 0.0101), "std": Tolerance(0.0006, 0.0062)}
"""Tolerances for the five published runs of a cell. A mean moves by up to 0.005 with them, a
deviation (n − 1) by up to 0.005 · √(5/4).
"""
_WITHOUT_K = ("zero_shot", "gt_clue", "non_clue", "text_rag", "m_gt")
"""Settings of which no k is printed."""
_PARTS = ("retriever", "model", "setting", "m", "k", "modality", "scenario")


def audit_rows(
    check: str,
    table: int | str,
    where: pd.DataFrame | Sequence[str],
    printed: object,
    recomputed: object,
    allowed: Tolerance,
) -> pd.DataFrame:
    """Returns the rows of an audit, one for each row of a table or each name in `where`. The other
    arguments have that length, or are one value for all. Columns: check, table, cell, reported,
    recomputed, tolerance, finding (one of `FINDINGS`), and an empty note.
    """
    names = cell_labels(where) if isinstance(where, pd.DataFrame) else list(where)
    rows = pd.DataFrame(
        {
            "check": check,
            "table": str(table),
            "cell": names,
            "reported": np.asarray(printed, float),
            "recomputed": np.asarray(recomputed, float),
            "tolerance": max(allowed.exact, allowed.rounding),
        },
        index=range(len(names)),
    )
    apart = (rows["reported"] - rows["recomputed"]).abs()
    finding = np.select(
        [apart <= allowed.exact, apart <= allowed.rounding, rows["reported"].isna()],
        [AGREES, ROUNDED, NOT_COMPARABLE],
        CONTRADICTS,
    )
    return rows.assign(finding=finding, note="")


def cell_labels(cells: pd.DataFrame) -> list[str]:
    """Returns a label of each row: "Phi4-MM, one_in_k, k=10"."""
    parts = [part for part in _PARTS if part in cells]
    return [", ".join(_words(row)) for row in cells[parts].to_dict("records")]


def _words(row: Mapping[Hashable, Any]) -> list[str]:  # a row of a table: any values
    given = {str(part): value for part, value in row.items() if pd.notna(value)}
    if given.get("setting") in _WITHOUT_K:
        given.pop("k", None)
    return [f"{part}={value:g}" if part in "mk" else str(value) for part, value in given.items()]


def contradictions(checks: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of an audit in which published numbers contradict each other."""
    return checks[checks["finding"] == CONTRADICTS]


def audit_summary(checks: pd.DataFrame) -> pd.DataFrame:
    """Counts the findings of each check. Rows are checks; columns are tables and each of
    `FINDINGS`.
    """
    by_check = checks.groupby("check", sort=False)
    tables = by_check["table"].agg(lambda names: "; ".join(dict.fromkeys(names)))
    counts = by_check["finding"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(index=tables.index, columns=list(FINDINGS), fill_value=0)
    return pd.concat([tables.rename("tables"), counts], axis=1)
