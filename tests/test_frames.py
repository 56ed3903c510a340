"""A table that comes in is checked, and the message says which column of which table is
wrong, where, what was found and what is expected.
"""

from __future__ import annotations

import pandas as pd
import pytest

from vrag_kit.analysis import accuracy, compare, error_cases, gcue, summarise
from vrag_kit.errors import VragError
from vrag_kit.frames import ANSWERS, JUDGED, RUN, Column, Table
from vrag_kit.types import Benchmark

GOOD = {
    "model": "m",
    "setting": "gt_clue",
    "k": 1,
    "m": None,
    "draw": 0,
    "query_id": ["a", "b"],
    "group": "g",
    "doc_ids": [("x",), ("y", "z")],
    "answer": ["red", None],
    "status": ["ok", "timeout"],
    "score": [1.0, None],
    "abstained": [0.0, None],
}


def test_a_good_table_passes() -> None:
    JUDGED.check(pd.DataFrame(GOOD), list(GOOD), "here")
    ANSWERS.check(pd.DataFrame(GOOD).iloc[:0], ["k", "doc_ids", "query_id"], "here")


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("abstained", [0.0, 1.5], "column 'abstained', row 1: found 1.5, expected numbers from 0"),
        ("k", [1.0, 2.5], "column 'k', row 1: found 2.5, expected whole numbers from 0"),
        ("k", [-1, 1], "column 'k', row 0: found -1, expected whole numbers from 0"),
        ("score", ["1", "0"], "column 'score', row 0: found '1', expected numbers or nothing"),
        ("group", ["g", None], "column 'group', row 1: found None, expected text"),
        ("query_id", [1, 2], "column 'query_id', row 0: found 1, expected text"),
        ("doc_ids", [("x",), "y"], "column 'doc_ids', row 1: found 'y', expected texts"),
    ],
)
def test_a_bad_cell_is_named(column: str, cells: list[object], message: str) -> None:
    table = pd.DataFrame({**GOOD, column: pd.Series(cells, dtype=object)})
    with pytest.raises(VragError, match=f"here: the table of judged answers, {message}"):
        JUDGED.check(table, [column], "here")


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    with pytest.raises(VragError, match="the table of a run has no column 'rank'; found query_id"):
        RUN.check(pd.DataFrame({"query_id": ["a"]}), ["query_id", "rank"], "here")


def test_public_functions_check_what_comes_in(guide: Benchmark) -> None:
    table = pd.DataFrame(GOOD)
    for call in (
        lambda frame: accuracy(frame.drop(columns="group")),
        lambda frame: gcue(frame.drop(columns="group")),
        lambda frame: error_cases(frame.drop(columns="doc_ids"), guide),
        lambda frame: summarise(frame.drop(columns="group").assign(value=1.0), ["model"]),
        lambda frame: compare(frame, arm="setting", by=["model"], baseline="x"),
    ):
        with pytest.raises(VragError, match=r"the table of .* has no column"):
            call(table)


def test_a_range_may_be_open_and_is_told_in_words() -> None:
    assert str(Column("number", 0)) == "numbers from 0"
    assert str(Column("number", high=1, gaps=True)) == "numbers to 1 or nothing"
    Table("things", {"x": Column("number", 0)}).check(pd.DataFrame({"x": [7]}), ["x"], "here")
