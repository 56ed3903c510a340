"""The public tables' columns: their kind and range, checked where a table comes in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from pandas.api import types

from vrag_kit.errors import CertainError, VragError

_WORDS = {"text": "text", "number": "numbers", "whole": "whole numbers", "texts": "texts"}
"""What a message calls the values of a kind."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds."""

    kind: str
    """"text", "number", "whole" or "texts" (a tuple of str)."""
    low: float = -math.inf
    high: float = math.inf
    gaps: bool = False
    """Whether a value may be missing."""

    def __str__(self) -> str:
        words = _WORDS[self.kind]
        if self.low > -math.inf:
            words += f" from {self.low:g}"
        if self.high < math.inf:
            words += f" to {self.high:g}"
        if self.gaps:
            words += " or nothing"
        return words


@dataclass(frozen=True, slots=True)
class Table:
    """A public table: its name, and what its columns hold."""

    name: str
    columns: Mapping[str, Column]

    def check(self, frame: pd.DataFrame, needed: Sequence[str], where: str) -> None:
        """Raise `VragError`, which names table, column, row, what was found and what is
        expected, unless `frame` has the columns `needed`, as they should be.
        """
        if missing := [name for name in needed if name not in frame]:
            raise CertainError(
                f"{where}: the table of {self.name} has no column {missing[0]!r}; found"
                f" {', '.join(map(str, frame.columns))}, expected {', '.join(needed)}."
            )
        for name in needed:
            self._check_column(frame[name], self.columns[name], where)

    def _check_column(self, cells: pd.Series, column: Column, where: str) -> None:
        missing = cells.isna()
        wrong = ~(_IS[column.kind](cells) | missing)
        if not column.gaps:
            wrong |= missing
        if column.kind in ("number", "whole") and not wrong.any():
            wrong = ~(cells.between(column.low, column.high) | missing)
        if wrong.any():
            row = int(wrong.to_numpy(bool).argmax())
            raise VragError(
                f"{where}: the table of {self.name}, column {cells.name!r}, row"
                f" {cells.index[row]}: found {cells.iloc[row]!r}, expected {column}."
            )


def _numbers(cells: pd.Series) -> pd.Series:
    if types.is_numeric_dtype(cells):
        return pd.Series(True, cells.index)
    return cells.map(lambda cell: isinstance(cell, int | float)).astype(bool)


def _whole(cells: pd.Series) -> pd.Series:
    if types.is_integer_dtype(cells):
        return pd.Series(True, cells.index)
    return cells.map(lambda cell: isinstance(cell, int | float) and cell % 1 == 0).astype(bool)


def _texts(cells: pd.Series) -> pd.Series:
    return cells.map(
        lambda cell: isinstance(cell, tuple) and all(isinstance(each, str) for each in cell)
    ).astype(bool)


def _text(cells: pd.Series) -> pd.Series:
    if types.infer_dtype(cells) == "string":
        return pd.Series(True, cells.index)
    return cells.map(lambda cell: isinstance(cell, str)).astype(bool)


_IS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "text": _text,
    "number": _numbers,
    "whole": _whole,
    "texts": _texts,
}
_TEXT = Column("text")
_COUNT = Column("whole", 0)
_NUMBER = Column("number", gaps=True)
_CONTEXT = {
    "benchmark": _TEXT,
    "model": _TEXT,
    "setting": _TEXT,
    "k": _COUNT,
    "m": Column("whole", 0, gaps=True),
    "draw": _COUNT,
    "sample": _COUNT,
    "query_id": _TEXT,
    "group": _TEXT,
    "doc_ids": Column("texts"),
}
_SHARE = Column("number", 0, 1, gaps=True)
ANSWERS = Table("answers", {**_CONTEXT, "status": _TEXT, "answer": Column("text", gaps=True)})
"""One row a context and sample, from `ask_models`."""
JUDGED = Table(
    "judged answers",
    {**ANSWERS.columns, "score": _NUMBER, "spread": _NUMBER, "abstained": _SHARE, "marked": _SHARE},
)
"""The same with verdicts, from `judge_all`."""
VALUES = Table("values by query", {"query_id": _TEXT, "group": _TEXT, "value": _NUMBER})
"""One row a query and arm: from `per_query`, `score_runs` and `evaluate`."""
RUN = Table("a run", {"query_id": _TEXT, "doc_id": _TEXT, "rank": Column("whole", 1)})
"""Ranked documents, from a search."""
RESULTS = Table(
    "results",
    {
        "value": _NUMBER,
        "ci_low": _NUMBER,
        "ci_high": _NUMBER,
        "n": _COUNT,
        "model": _TEXT,
        "retriever": _TEXT,
        "setting": _TEXT,
        "metric": _TEXT,
        "k": _COUNT,
    },
)
"""Means with their n and interval, from `accuracy` and `summarise`, as figures take them."""
