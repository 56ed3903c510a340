"""Choices as verdicts, and what MRAG-Bench's own scorer would have made of them."""

from __future__ import annotations

import json
from dataclasses import replace

import factories
import pandas as pd
import pytest
from conftest import ROOT

from vrag_kit.analysis import to_percent
from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers
from vrag_kit.papers.mrag_bench.choices import (
    MultipleChoiceJudge,
    after_model_call,
    extract_officially,
)
from vrag_kit.papers.mrag_bench.results import accuracy_by_scenario, scenario_table, with_scenarios
from vrag_kit.types import Query

PAPER = ROOT / "vrag_kit/papers/mrag_bench"


ROWS = json.loads((PAPER / "choices_official.json").read_text("utf-8"))


OUTCOMES = {"asks": "falls back to GPT-3.5"}


LILIES = ("turkscap", "toad", "martagon", "tiger lily")


ASKED = Query(query_id="q", text="Which lily?", choices=LILIES, answers=("toad",), group="g")


LILY = factories.benchmark([ASKED], name="lilies")


def answers(*said: str, status: str = "ok") -> pd.DataFrame:
    return factories.answers(query_id="q", answer=list(said), status=status)


@pytest.mark.parametrize("row", ROWS["rows"], ids=lambda row: row["raw"][:20])
def test_the_official_scorer_does_what_was_seen_of_it(row: dict[str, str]) -> None:
    assert extract_officially(row["raw"]) == OUTCOMES.get(row["official"], row["official"])


def test_a_question_to_gpt_hangs_without_a_key_and_takes_bare_letters_only() -> None:
    replies = (None, " B\n", "B.", "AB", "")
    assert [after_model_call(each) for each in replies] == ["hang", "B", *["wrong"] * 3]


def test_only_the_right_letter_earns_and_the_rule_stands_in_the_marks() -> None:
    said = ("B", "b) toad", "Answer: C", "A or B", "I cannot tell.", "a lily")
    judged = judge_answers(MultipleChoiceJudge(), LILY, answers(*said))
    assert judged["score"].tolist() == [1, 1, 0, 0, 0, 0]
    assert judged["marks"].tolist() == [
        "whole answer",
        "leading letter",
        "tagged",
        "ambiguous, letter in text",
        "abstention, declined",
        "unparsed",
    ]
    assert judged["verdict"].tolist()[:4] == [
        "B whole answer",
        "B leading letter",
        "C tagged",
        "ambiguous A, B (letter in text)",
    ]
    assert judged["abstained"].tolist() == [0, 0, 0, 0, 1, 0]
    assert (judged[["score_min", "score_max"]].to_numpy() == [0, 1]).all()


def test_an_answer_that_names_several_letters_earns_nothing_though_one_is_right() -> None:
    judged = judge_answers(
        MultipleChoiceJudge(), LILY, answers("B or C", "A or B", "Answer: B, or maybe D")
    )
    assert judged["score"].tolist() == [0, 0, 0]


def test_answers_without_a_choice_are_counted_beside_n() -> None:
    said = answers("B", "A", "A or B", "I cannot tell.", "a lily").assign(query_id=list("abcde"))
    silent = answers("", status="empty").assign(query_id="f")
    told = {"scenario": "angle", "aspect": "perspective", "source": ""}
    queries = {name: replace(ASKED, query_id=name, group=name, metadata=told) for name in "abcdef"}
    lilies = replace(LILY, queries=queries)
    table = pd.concat([said, silent], ignore_index=True)
    table = table.assign(model="m", setting="no_rag", k=0, group=table["query_id"])
    judged = with_scenarios(judge_answers(MultipleChoiceJudge(), lilies, table), lilies)
    means = accuracy_by_scenario(judged, weights=None).query("metric == 'accuracy'")
    for row in means.to_dict("records"):  # overall, in its aspect, and in its scenario
        assert (row["n"], row["n_failed"], row["n_empty"], row["n_no_option"]) == (6, 0, 1, 3)
        assert row["value"] == 1 / 6
    cells = scenario_table(to_percent(means)).to_numpy().ravel()
    assert all(cell.endswith("(1 empty, 3 no option chosen)") for cell in cells if cell)


def test_a_question_without_options_is_no_choice() -> None:
    with pytest.raises(VragError, match="query 'q' has no options"):
        MultipleChoiceJudge().judge_one(Query(query_id="q", text="?", answers=("x",)), "x")
