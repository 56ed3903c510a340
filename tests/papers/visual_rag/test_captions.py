"""Sentences of captions, against counts by hand."""

from __future__ import annotations

import pandas as pd

from vrag_kit.papers.visual_rag.figures import correction_note, define


def test_a_note_counts_the_tests_of_one_family() -> None:
    rows = {"stratum": ["a", "a", "b", "a"], "k": [1.0, 3.0, 1.0, None], "p": [0.1, 0.2, 0.3, None]}
    table = pd.DataFrame(rows).assign(model="m")
    assert "over 2 tests (k);" in correction_note(table, table.iloc[0])
    assert "over 1 test;" in correction_note(table, table.iloc[2])
    assert correction_note(table, table.iloc[3]) == ""


def test_terms_are_defined() -> None:
    assert define("clue", strata=["other"]) == "Clue: an image that shows the answer."
    assert define(strata=["other"]) == ""
