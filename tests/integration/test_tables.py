"""A table that comes in has the columns that are needed, and a key in each row."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from factories import judged

from vrag_kit.analysis import mean_scores
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import require_columns

ANSWERS = judged(score=[1.0, math.nan], rank=[1, 2])


def test_public_functions_check_what_comes_in() -> None:
    with pytest.raises(VragError, match="the table has no column"):
        mean_scores(ANSWERS.drop(columns="group"))


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        (ANSWERS.assign(group=["g", None]), "group", "'group', row 1"),
        (ANSWERS[["query_id"]], "rank", "'rank'; found query_id"),
    ],
)
def test_a_table_is_checked_by_column(table: pd.DataFrame, column: str, words: str) -> None:
    for good in (ANSWERS, ANSWERS.iloc[:0]):
        require_columns(good, list(ANSWERS), "here")
    with pytest.raises(VragError, match=words):
        require_columns(table, [column], "here")
