"""The rows of an audit: a printed number beside the one that was computed again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

CELL = ["model", "setting", "k"]
ROUNDING = {"avg": 0.0051, "std": 0.0006}
"""How far a recomputed number may be from a printed one: half a unit of its last digit,
and a hair.
"""
_PARTS = ("retriever", "model", "setting", "m", "k")


def rows_of(
    check: str,
    table: int | str,
    where: pd.DataFrame | Sequence[str],
    printed: object,
    recomputed: object,
    tolerance: float,
) -> pd.DataFrame:
    """Rows of the audit, one for each row of a table or each name in `where`; the other
    columns are of that length, or one value for all. The column note is empty.
    """
    names = places(where) if isinstance(where, pd.DataFrame) else list(where)
    rows = pd.DataFrame(
        {
            "check": check,
            "table": str(table),
            "where": names,
            "printed": np.asarray(printed, float),
            "recomputed": np.asarray(recomputed, float),
            "tolerance": tolerance,
        },
        index=range(len(names)),
    )
    agree = (rows["printed"] - rows["recomputed"]).abs() <= tolerance
    return rows.assign(ok=agree.astype("boolean").mask(rows["printed"].isna()), note="")


def places(cells: pd.DataFrame) -> list[str]:
    """The place of each row in words: "Phi4-MM, one_in_k, k=10"."""
    parts = [part for part in _PARTS if part in cells]
    return [", ".join(_words(row)) for row in cells[parts].to_dict("records")]


def _words(row: Mapping[Hashable, Any]) -> list[str]:  # a row of a table: any values
    given = {str(part): value for part, value in row.items() if pd.notna(value)}
    return [f"{part}={value:g}" if part in "mk" else str(value) for part, value in given.items()]
