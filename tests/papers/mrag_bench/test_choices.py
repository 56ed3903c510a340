"""Choices as verdicts, what the official scorer makes of them, and the prompt of Table 5."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import factories
import pandas as pd
import pytest
from conftest import ROOT
from mrag_rows import four_questions, read_of

from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.choices import (
    MultipleChoiceJudge,
    after_model_call,
    evaluate_extractors,
    extract_officially,
    extraction_prompt,
    with_extracted_options,
    with_official_score,
)
from vrag_kit.types import Prompt, Query
from vrag_kit.workspace import Workspace

ROWS = json.loads(
    (ROOT / "vrag_kit/papers/mrag_bench/choices_official.json").read_text(encoding="utf-8")
)["rows"]
OUTCOMES = {"asks": "falls back to GPT-3.5"}
LILIES = ("turkscap", "toad", "martagon", "tiger lily")
ASKED = Query(query_id="q", text="Which lily?", choices=LILIES, answers=("toad",), group="g")
LILY = factories.benchmark([ASKED], name="lilies")
FOUR = four_questions()


def judged(*said: str, status: str = "ok") -> pd.DataFrame:
    answers = factories.answers(query_id="q", answer=list(said), status=status)
    return judge_answers(MultipleChoiceJudge(), LILY, answers)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["raw"][:20])
def test_the_official_scorer_does_what_was_observed(row: dict[str, str]) -> None:
    assert extract_officially(row["raw"]) == OUTCOMES.get(row["official"], row["official"])


def test_a_call_to_gpt_hangs_without_a_key_and_takes_bare_letters_only() -> None:
    replies = (None, " B\n", "B.", "AB", "")
    assert [after_model_call(each) for each in replies] == ["hang", "B", *["wrong"] * 3]


def test_only_the_correct_letter_scores_and_the_marks_name_the_rule() -> None:
    table = judged("B", "b) toad", "Answer: C", "B or C", "I cannot tell.", "a lily")
    assert table["score"].tolist() == [1, 1, 0, 0, 0, 0]
    assert table["marks"].tolist() == [
        *("whole answer", "leading letter", "tagged", "ambiguous, letter in text"),
        *("abstention, declined", "unparsed"),
    ]
    assert table["verdict"][3] == "ambiguous B, C (letter in text)"
    assert table["abstained"].tolist() == [0, 0, 0, 0, 1, 0]


def test_answers_without_a_choice_are_counted_beside_n() -> None:
    said = factories.answers(
        query_id=list("abcde"), answer=["B", "A", "A or B", "I cannot tell.", "x"]
    )
    empty = factories.answers(query_id=["f"], answer=[""], status="empty")
    about = {"scenario": "angle", "aspect": "perspective", "source": ""}
    queries = [replace(ASKED, query_id=name, group=name, metadata=about) for name in "abcdef"]
    table = pd.concat([said, empty], ignore_index=True).assign(setting="no_rag", k=0)
    table = table.assign(group=table["query_id"])
    answers = paper.results.judge_choices(factories.benchmark(queries), table)
    means = paper.results.accuracy_by_scenario(answers, weights=None, by=["model", "setting"])
    means = means.query("metric == 'accuracy'")
    for row in means.to_dict("records"):  # overall, in its aspect, and in its scenario
        assert (row["n"], row["n_failed"], row["n_empty"], row["n_no_option"]) == (6, 0, 1, 3)
        assert row["value"] == pytest.approx(100 / 6)
    cells = paper.results.scenario_table(means, rows=["level", "scenario"]).to_numpy().ravel()
    assert all(cell.endswith("(1 empty, 3 no option chosen)") for cell in cells if cell)


def test_a_question_without_options_is_no_choice() -> None:
    with pytest.raises(VragError, match="'q'"):
        MultipleChoiceJudge().judge_one(Query(query_id="q", text="?", answers=("x",)), "x")


def test_our_parser_reads_all_labelled_answers_and_the_official_scorer_does_not() -> None:
    table = evaluate_extractors()
    assert table["source"].value_counts().to_dict() == {"adversarial": 68, "rule test cases": 16}
    assert table["options"].map(len).eq(4).all()
    assert set(table["ours_is"]) == {"correct"}
    official = table.set_index("raw")["official_is"]
    assert official["The answer is B, the toad lily."] == "crash"
    assert official["**B**"] == "falls back to GPT-3.5"
    for raw in ("A cat with a kitten", "A or B", "Answer is B because A has wings"):
        assert official[raw] == "misread"
    assert official[""] == "correct"


@pytest.fixture
def read() -> pd.DataFrame:
    """Answers to six copies of the question, and a call that failed."""
    said = [
        "B",
        "b",
        "A cat with a kitten",
        "The flower is surely a toad lily.",
        "A or B",
        "",
        None,
    ]
    names = list("0123456")
    queries = [replace(ASKED, query_id=name, group=name) for name in names]
    status = [*["ok"] * 5, "empty", "timeout"]
    answers = factories.answers(query_id=names, answer=said, status=status, setting="no_rag")
    benchmark = factories.benchmark(queries)
    return with_official_score(judge_answers(MultipleChoiceJudge(), benchmark, answers), benchmark)


def test_every_answer_has_one_outcome_for_each_extraction(read: pd.DataFrame) -> None:
    shares = paper.choices.extraction_shares(read, "model")
    assert (shares["n"] == 6).all()
    assert shares.groupby("extraction")["value"].sum().tolist() == pytest.approx([100, 100])
    official = shares[shares["extraction"] == "official"].set_index("metric")["value"]
    assert official[["missing", "asks", "crash"]].tolist() == pytest.approx([100 / 6] * 3)
    (axis,) = paper.choices.extraction_figure(shares, "right", "wrong", "A finding").axes
    rows = [label.get_text() for label in axis.get_yticklabels()]
    assert rows == ["m · released scorer", "m · our parser"]
    none = paper.choices.extraction_shares(read.iloc[:0], "model")
    (axis,) = paper.choices.extraction_figure(none, "right", "wrong", "A finding").axes
    assert axis.get_title(loc="left") == "n = 0 answers"


def test_the_prompt_is_that_of_the_paper_and_braces_in_an_answer_stay() -> None:
    ((message,),) = [extraction_prompt(FOUR.queries["2"], "it is {letter} {B}")]
    assert message.role == "user"
    assert message.parts == (
        "Please read the following example. Then extract the multiple choice letter with the"
        " answer corresponding to the choice list from the model response and type it at the end of"
        " the prompt. You should only output either A, B, C, or D.\n\n"
        "Question: Where was {this} taken?\n"
        "Choice List: (A) EastAsia (B) SouthEastAsia (C) Africa (D) Europe\n"
        "Model Response: it is {letter} {B}\n"
        "Extracted answer:",
    )


def test_a_bare_letter_from_the_extractor_is_the_scorers_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def reply(generator: object, prompts: Sequence[Prompt], *_: object, **how: object) -> list[Any]:
        asked.extend(str(prompt[0].parts[0]).splitlines()[-2] for prompt in prompts)
        return [SimpleNamespace(raw=raw) for raw in (" A\n", "C", "A.", None)]

    monkeypatch.setattr(paper.choices, "load_generator", lambda *_, **how: None)
    monkeypatch.setattr(paper.choices, "ask_prompts", reply)
    said = ["B", "a", "c", "maybe a toad", "x", "The flower in the image is a toad lily.", None]
    answers = read_of(said, ["ok"] * 6 + ["timeout"])
    none = with_extracted_options(FOUR, answers, "", Workspace(answers_dir=tmp_path))
    assert "`extractor`" in none["extracted"][1]
    assert none["official_extracted"].isna().all()
    table = with_extracted_options(FOUR, answers, "model", Workspace(answers_dir=tmp_path))
    assert asked == [f"Model Response: {each}" for each in said[1:5]]
    assert table["extracted"].tolist()[:-1] == [
        *("incorrect option", "correct option", "incorrect option", "wrong", "hang", "crash"),
    ]
    assert table["official_extracted"].tolist()[:4] == [0.0, 1.0, 0.0, 0.0]
    assert table["official_extracted"][4:].isna().tolist() == [True, False, True]
