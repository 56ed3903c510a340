"""Validation of the columns of public tables."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.errors import SetupError, VragError

_KEYS = ("query_id", "group")
"""Columns that rows are joined and grouped by: a row without one would drop out."""


def require_columns(frame: pd.DataFrame, needed: Sequence[str], where: str) -> None:
    """Raise `VragError` unless `frame` has the columns `needed`, a key in each row, and ranks from
    1. The message begins with `where`.
    """
    if missing := [name for name in needed if name not in frame]:
        raise SetupError(
            f"{where}: the table has no column {missing[0]!r}; found"
            f" {', '.join(map(str, frame.columns))}, expected {', '.join(needed)}."
        )
    for name in _KEYS:
        if name in needed and (gaps := frame[name].isna()).any():
            row = gaps.idxmax()
            raise VragError(f"{where}: column {name!r}, row {row}: found nothing, expected text.")
    if "rank" in needed and (frame["rank"] < 1).any():
        raise VragError(f"{where}: column 'rank' holds {frame['rank'].min()}; the first is 1.")
