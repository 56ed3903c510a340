"""A table that comes in has the columns that are needed, and a key in each row."""

from __future__ import annotations

import pandas as pd
import pytest

from vrag_kit.analysis import cluster_means, mean_scores, paired_differences
from vrag_kit.errors import VragError
from vrag_kit.papers.visual_rag.error_budget import error_cases
from vrag_kit.papers.visual_rag.gcue import gcue
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark

GOOD = {
    "model": "m",
    "setting": "gt_clue",
    "k": 1,
    "m": None,
    "draw": 0,
    "query_id": ["a", "b"],
    "group": "g",
    "rank": [1, 2],
    "doc_ids": [("x",), ("y", "z")],
    "answer": ["red", None],
    "status": ["ok", "timeout"],
    "score": [1.0, None],
    "abstained": [0.0, None],
}


def test_a_good_table_passes() -> None:
    require_columns(pd.DataFrame(GOOD), list(GOOD), "here")
    require_columns(pd.DataFrame(GOOD).iloc[:0], list(GOOD), "here")


@pytest.mark.parametrize("column", ["query_id", "group"])
def test_a_row_without_a_key_is_named(column: str) -> None:
    table = pd.DataFrame({**GOOD, column: ["g", None]})
    with pytest.raises(VragError, match=f"here: column '{column}', row 1: found nothing"):
        require_columns(table, [column], "here")


def test_ranks_count_from_1() -> None:
    with pytest.raises(VragError, match="here: column 'rank' holds 0; the first is 1"):
        require_columns(pd.DataFrame({**GOOD, "rank": [0, 1]}), ["rank"], "here")


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    with pytest.raises(VragError, match="the table has no column 'rank'; found query_id"):
        require_columns(pd.DataFrame({"query_id": ["a"]}), ["query_id", "rank"], "here")


def test_public_functions_check_what_comes_in(guide: Benchmark) -> None:
    table = pd.DataFrame(GOOD)
    for call in (
        lambda frame: mean_scores(frame.drop(columns="group")),
        lambda frame: gcue(frame.drop(columns="group")),
        lambda frame: error_cases(frame.drop(columns="doc_ids"), guide),
        lambda frame: cluster_means(frame.drop(columns="group").assign(value=1.0), ["model"]),
        lambda frame: paired_differences(frame, arm="setting", by=["model"], baseline="x"),
    ):
        with pytest.raises(VragError, match="the table has no column"):
            call(table)
