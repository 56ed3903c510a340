"""Published tables of the papers as tidy DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError

_FOLDER = Path(__file__).parent
Filter = str | int | Sequence[str | int]
_ARM = ("model", "level", "scenario", "metric")
"""Columns of which two compared settings have the same values."""


def published(
    paper: str, table: int | str | Sequence[int | str], **filters: Filter
) -> pd.DataFrame:
    """Returns a published table as a tidy DataFrame: `published("visual_rag", table=3)`. Each row
    is one observation; values are as published (percent for shares), settings, data sets and
    metrics have the names of our results.

    `paper` is a folder here, such as visual_rag. `table` is a table's number, or the name of one of
    the files, such as "figure02" or "section3" (`README.md` here lists them); several are
    concatenated. `filters` select rows by the values of columns, one value or several each, and
    drop these columns: `published("crag_mm", 5, split="single_turn")`. Columns without a value are
    dropped. Raises `VragError` with the list of tables for an unknown table, `KeyError` for an
    unknown column.
    """
    tables = [table] if isinstance(table, int | str) else table
    rows = pd.concat([_read(paper, each) for each in tables], ignore_index=True)
    for column, wanted in filters.items():
        rows = rows[rows[column].isin(np.atleast_1d(wanted))].drop(columns=column)
    return rows.dropna(axis="columns", how="all").reset_index(drop=True)


def _read(paper: str, table: int | str) -> pd.DataFrame:
    stem = f"table{table:02d}" if isinstance(table, int) else table
    file = _FOLDER / paper / "tables" / f"{stem}.csv"
    if not file.is_file():
        known = sorted(f"{each.parts[-3]}/{each.stem}" for each in _FOLDER.glob("*/tables/*.csv"))
        raise VragError(f"no published table {paper}/{stem}; expected one of {', '.join(known)}.")
    return pd.read_csv(file)


def published_gains(
    paper: str, table: int, baselines: Sequence[str], **filters: Filter
) -> pd.DataFrame:
    """Computes the differences of a table's published means from those of each setting in
    `baselines`, of the same model, scenario and metric, in points. Columns: model, level, scenario,
    metric (where the table has them), setting, baseline, value, unit ("percent": of the compared
    means); without intervals, which published means do not allow. `filters` as in `published`.
    """
    means = published(paper, table, **filters)
    arm = [name for name in _ARM if name in means]
    means = means[[*arm, "setting", "value", "unit"]]
    tables = []
    for baseline in baselines:
        start = means[means["setting"] == baseline].set_index(arm)["value"].rename("start")
        others = means[means["setting"] != baseline].join(start, on=arm, how="inner")
        gains = (others["value"] - others["start"]).round(2)
        tables.append(others.drop(columns="start").assign(baseline=baseline, value=gains))
    return pd.concat(tables, ignore_index=True)


def format_spread(table: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Formats the range and median of `value` in each group of `by`: "−22.4 to 7.9, median
    −13.1".
    """
    groups = table.groupby(list(by), sort=False)["value"]
    return groups.agg(lambda values: _reach(values.min(), values.max(), values.median()))


def _reach(low: float, high: float, median: float) -> str:
    return f"{low:.1f} to {high:.1f}, median {median:.1f}".replace("-", "−")
