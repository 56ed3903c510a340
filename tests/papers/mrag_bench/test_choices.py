"""Choices as verdicts, what the official scorer makes of them, and the prompt of Table 5."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import factories
import pandas as pd
import pytest
from conftest import ROOT
from mrag_rows import four_questions

from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.choices import (
    MultipleChoiceJudge,
    evaluate_extractors,
    extract_officially,
    extraction_prompt,
    with_extracted_options,
    with_official_score,
)
from vrag_kit.types import Benchmark, Prompt, Query
from vrag_kit.workspace import Workspace

FILE = ROOT / "vrag_kit/papers/mrag_bench/choices.json"
ROWS = [row for row in json.loads(FILE.read_text(encoding="utf-8"))["rows"] if "official" in row]
LILIES = ("turkscap", "toad", "martagon", "tiger lily")
ANGLE = {"scenario": "angle", "aspect": "perspective", "source": ""}


def asked(said: Sequence[str | None], status: Sequence[str]) -> tuple[Benchmark, pd.DataFrame]:
    """Copies of one question, with the second option right, and one answer to each."""
    names = [str(number) for number in range(len(said))]
    queries = [
        Query(query_id=name, text="?", choices=LILIES, answers=("toad",), group=name)
        for name in names
    ]
    queries = [replace(query, metadata=ANGLE) for query in queries]
    about = {"setting": "no_rag", "k": 0, "status": status}
    return factories.benchmark(queries), factories.answers(query_id=names, answer=said, **about)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["raw"][:20])
def test_the_official_scorer_does_what_was_observed(row):
    observed = row["official"].replace("asks", "falls back to GPT-3.5")
    assert extract_officially(row["raw"]) == observed


def test_only_the_correct_letter_scores_and_the_marks_name_the_rule():
    said = ("B", "b) toad", "Answer: C", "B or C", "I cannot tell.", "a lily")
    table = judge_answers(MultipleChoiceJudge(), *asked(said, ["ok"] * 6))
    assert table["score"].tolist() == [1, 1, 0, 0, 0, 0]
    assert table["marks"].tolist() == [
        *("whole answer", "leading letter", "tagged", "ambiguous, letter in text"),
        *("abstention, declined", "unparsed"),
    ]
    assert table["verdict"][3] == "ambiguous B, C (letter in text)"
    assert table["abstained"].tolist() == [0, 0, 0, 0, 1, 0]


def test_answers_without_a_choice_are_counted_beside_n():
    said = ("B", "A", "A or B", "I cannot tell.", "x", "")
    answers = paper.results.judge_choices(*asked(said, ["ok"] * 5 + ["empty"]))
    means = paper.results.accuracy_by_scenario(answers, weights=None, by=["model", "setting"])
    means = means.query("metric == 'accuracy'")  # overall, in its aspect, and in its scenario
    assert means["value"].tolist() == pytest.approx([100 / 6] * 3)
    counts = means[["n", "n_failed", "n_empty", "n_no_option"]].drop_duplicates()
    assert counts.to_numpy().tolist() == [[6, 0, 1, 3]]
    cells = paper.results.scenario_table(means, rows=["level", "scenario"]).to_numpy().ravel()
    assert all(cell.endswith("(1 empty, 3 no option chosen)") for cell in cells if cell)


def test_a_question_without_options_is_no_choice():
    with pytest.raises(VragError, match="'q'"):
        MultipleChoiceJudge().judge_one(Query(query_id="q", text="?", answers=("x",)), "x")


def test_our_parser_reads_all_labelled_answers_and_the_official_scorer_does_not():
    table = evaluate_extractors()
    assert table["source"].value_counts().to_dict() == {"adversarial": 68, "rule test cases": 16}
    assert set(table["ours_is"]) == {"correct"}
    official = table.set_index("raw")["official_is"]
    assert official["The answer is B, the toad lily."] == "crash"
    assert official["**B**"] == "falls back to GPT-3.5"
    for raw in ("A cat with a kitten", "A or B", "Answer is B because A has wings"):
        assert official[raw] == "misread"
    assert official[""] == "correct"


def test_every_answer_has_one_outcome_for_each_extraction():
    said = ("B", "b", "A cat with a kitten", "The flower is surely a toad lily.", "A or B", "")
    world, answers = asked([*said, None], [*["ok"] * 5, "empty", "timeout"])
    read = with_official_score(answers, world)
    shares = paper.choices.extraction_shares(read, "model")
    assert (shares["n"] == 6).all()
    assert shares.groupby("extraction")["value"].sum().tolist() == pytest.approx([100, 100])
    official = shares[shares["extraction"] == "official"].set_index("metric")["value"]
    assert official[["missing", "asks", "crash"]].tolist() == pytest.approx([100 / 6] * 3)
    none = paper.choices.extraction_shares(read.iloc[:0], "model")
    for table, bars in ((shares, ["m · released scorer", "m · our parser"]), (none, [])):
        (axis,) = paper.choices.extraction_figure(table, "right", "wrong", "A finding").axes
        assert [label.get_text() for label in axis.get_yticklabels()] == bars


def test_the_prompt_is_that_of_the_paper_and_braces_in_an_answer_stay():
    (message,) = extraction_prompt(four_questions().queries["2"], "it is {letter} {B}")
    assert message.parts == (
        "Please read the following example. Then extract the multiple choice letter with the"
        " answer corresponding to the choice list from the model response and type it at the end of"
        " the prompt. You should only output either A, B, C, or D.\n\n"
        "Question: Where was {this} taken?\n"
        "Choice List: (A) EastAsia (B) SouthEastAsia (C) Africa (D) Europe\n"
        "Model Response: it is {letter} {B}\n"
        "Extracted answer:",
    )


def test_only_a_bare_letter_from_the_extractor_is_the_scorers_letter(tmp_path, monkeypatch):
    replies = {"a": " B\n", "c": "C", "maybe a toad": "B.", "x": "AB", "y": "", "z": None}
    calls: list[str] = []

    def reply(generator: object, prompts: Sequence[Prompt], *_: object, **how: object) -> object:
        calls.extend(str(prompt[0].parts[0]).splitlines()[-2] for prompt in prompts)
        return [SimpleNamespace(raw=raw) for raw in replies.values()]

    monkeypatch.setattr(paper.choices, "load_generator", lambda *_, **how: None)
    monkeypatch.setattr(paper.choices, "ask_prompts", reply)
    said = ["B", *replies, "The flower in the image is a toad lily.", None]
    world, answers = asked(said, [*["ok"] * 8, "timeout"])
    answers = with_official_score(answers, world)
    none = with_extracted_options(world, answers, "", Workspace(answers_dir=tmp_path))
    assert "`extractor`" in none["extracted"][1]
    assert none["official_extracted"].isna().all()
    table = with_extracted_options(world, answers, "model", Workspace(answers_dir=tmp_path))
    assert calls == [f"Model Response: {each}" for each in replies]
    right, wrong = "correct option", "incorrect option"
    outcomes = [right, right, wrong, *["wrong"] * 3, "hang", "crash"]
    assert table["extracted"].tolist()[:-1] == outcomes
    scores = table["official_extracted"].fillna(-1).tolist()
    assert scores == [1, 1, 0, 0, 0, 0, -1, 0, -1]
