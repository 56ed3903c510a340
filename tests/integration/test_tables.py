"""A table that comes in has the columns that are needed, and a key in each row."""

from __future__ import annotations

import pandas as pd
import pytest

from vrag_kit.analysis import cluster_means, mean_scores, paired_differences
from vrag_kit.errors import VragError
from vrag_kit.types import require_columns

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


def test_public_functions_check_what_comes_in() -> None:
    table = pd.DataFrame(GOOD)
    for call in (
        lambda frame: mean_scores(frame.drop(columns="group")),
        lambda frame: cluster_means(frame.drop(columns="group").assign(value=1.0), ["model"]),
        lambda frame: paired_differences(
            frame.drop(columns="group"), arm="setting", by=["model"], baseline="gt_clue"
        ),
    ):
        with pytest.raises(VragError, match="the table has no column"):
            call(table)


def test_a_table_needs_its_columns_a_key_in_each_row_and_ranks_from_1() -> None:
    good = pd.DataFrame(GOOD)
    for table in (good, good.iloc[:0]):
        require_columns(table, list(GOOD), "here")
    for table, column, words in (
        (good.assign(query_id=["a", None]), "query_id", "'query_id', row 1"),
        (good.assign(group=["g", None]), "group", "'group', row 1"),
        (good.assign(rank=[0, 1]), "rank", "'rank' holds 0"),
        (good[["query_id"]], "rank", "'rank'; found query_id"),
    ):
        with pytest.raises(VragError, match=words):
            require_columns(table, [column], "here")
