"""Letters: which ones answers choose, and whether an option is kept when it moves."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers
from vrag_kit.papers import mrag_bench as paper

FOUR = four_questions()
"""The first option is right; query 2 has "EastAsia", "SouthEastAsia", "Africa", "Europe"."""


def said(by: int, **words: str | None) -> pd.DataFrame:
    """Answers to the questions with their options rotated, judged, with letters."""
    world = paper.settings.rotate_options(FOUR, by)
    rows = []
    for name, answer in words.items():
        query = world.queries[name.removeprefix("q")]
        status = "error" if answer is None else "ok" if answer else "empty"
        row = {"query_id": query.query_id, "group": query.group, "answer": answer}
        rows.append({**row, "status": status, "detail": ""})
    arm = {"model": "m", "setting": "no_rag", "k": 0}
    return paper.results.with_options(
        judge_answers(paper.choices.MultipleChoiceJudge(), world, pd.DataFrame(rows).assign(**arm)),
        world,
    )


def test_letter_and_option_are_those_of_the_questions_that_were_asked() -> None:
    table = said(1, q0="B", q2="(A)", q3="no idea", q1="").set_index("query_id")
    assert table["correct_option"].tolist() == ["B"] * 4
    assert table["option"].to_dict() == {"0": "B", "2": "A", "3": "none", "1": "none"}
    assert table.loc["0", "option_text"] == "wood_rabbit"
    assert table.loc["2", "option_text"] == "Europe"  # the last option came to the front
    assert table.loc["3", "option_text"] == ""


def test_shares_of_letters_are_of_the_answers_that_came() -> None:
    table = said(0, q0="A", q2="A", q3="no idea", q1=None)
    shares = paper.results.option_selection_rates(table, weights=None).set_index("option")
    assert shares["value"].to_dict() == pytest.approx(
        {"A": 2 / 3, "B": 0, "C": 0, "D": 0, "none": 1 / 3}
    )
    assert set(shares["n_failed"]) == {1}


def test_who_keeps_to_a_letter_changes_the_option_and_who_keeps_to_an_option_the_letter() -> None:
    rotations = {
        by: said(by, q0="A", q2="ABCD"[by], q3=f"({'BCDA'[by]})", q1="none of them")
        for by in range(4)
    }
    found = paper.results.rotation_consistency(rotations, weights=None).set_index("metric")
    # query 2 and 3 keep their option, 2 the right one; 0 says A of whatever stands there
    assert found.loc["same option in all", ["value", "n"]].tolist() == [0.5, 4]
    assert found.loc["right in all", "value"] == 0.25


def test_a_question_without_an_answer_under_one_rotation_is_left_out_and_counted() -> None:
    rotations = {0: said(0, q0="A", q2="A"), 1: said(1, q0="B", q2=None)}
    found = paper.results.rotation_consistency(rotations, weights=None).set_index("metric")
    assert found.loc["right in all", ["value", "n", "n_failed"]].tolist() == [1.0, 1, 1]
    assert math.isfinite(found.loc["same option in all", "ci_low"])


def test_one_rotation_tells_nothing() -> None:
    with pytest.raises(VragError, match=r"1 rotation of the options; expected two or more"):
        paper.results.rotation_consistency({0: said(0, q0="A")}, weights=None)
