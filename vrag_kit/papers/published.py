"""Published tables of the papers as tidy DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError

_FOLDER = Path(__file__).parent


def published(paper: str, table: int | str) -> pd.DataFrame:
    """Returns a published table as a tidy DataFrame: `published("visual_rag", table=3)`. Each row
    is one observation; values are as published (percent for shares).

    `paper` is a folder here, such as visual_rag. `table` is a table's number, or the name of one of
    the files, such as "figure02" or "section3" (`README.md` here lists them). Where a table has
    both runs and their summary, all rows are returned: single values have neither `run` nor
    `statistic`, runs have a `run`, published means and deviations a `statistic` ("avg", "std").
    Raises `VragError` with the list of tables for an unknown name.
    """
    stem = f"table{table:02d}" if isinstance(table, int) else table
    files = sorted(
        file
        for file in _FOLDER.glob("*/tables/*.csv")
        if file.parent.parent.name == paper
        and (file.stem == stem or file.stem.startswith(f"{stem}_"))
    )
    if not files:
        known = sorted(
            f"{file.parent.parent.name}/{file.stem}" for file in _FOLDER.glob("*/tables/*.csv")
        )
        raise VragError(f"no published table {paper}/{stem}; expected one of {', '.join(known)}.")
    return pd.concat([pd.read_csv(file) for file in files], ignore_index=True)


def format_spread(table: pd.DataFrame, by: Sequence[str], *, column: str = "value") -> pd.Series:
    """Formats a column's range and median in each group of `by`: "−22.4 to 7.9, median −13.1"."""
    spread = table.groupby(list(by), sort=False)[column].agg(["min", "max", "median"])
    cells = [_reach(*map(float, row)) for row in spread.itertuples(index=False)]
    return pd.Series(cells, spread.index)


def _reach(*numbers: float) -> str:
    words = (f"{number:.1f}".replace("-", "−") for number in numbers)
    return "{} to {}, median {}".format(*words)
