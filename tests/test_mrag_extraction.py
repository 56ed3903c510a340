"""The prompt of Table 5, and what becomes of answers when a real model is asked by it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.papers.mrag_bench.choices import (
    compare_extractors,
    extraction_prompt,
    with_extracted_options,
    with_official_score,
)

FOUR = four_questions()


def test_the_prompt_is_that_of_the_paper_and_braces_in_an_answer_stay() -> None:
    ((message),) = extraction_prompt(FOUR.queries["2"], "it is {letter} {B}")
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


def read_of(said: list[str | None], status: list[str]) -> pd.DataFrame:
    """Answers of one model to question 0 (and the last to question 1), both readers'."""
    asked = {"model": "m", "query_id": ["0"] * (len(said) - 1) + ["1"]}
    return with_official_score(pd.DataFrame({**asked, "answer": said, "status": status}), FOUR)


@pytest.mark.slow
def test_a_model_is_asked_only_what_the_scorer_asks_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["B", "b", "**toad**", "The flower in the image is a toad lily.", None]
    read = read_of(said, ["ok"] * 4 + ["timeout"])
    for _ in range(2):
        told = with_extracted_options(FOUR, read, "field-guide-vlm-few", tmp_path)
        # that model was never taught to answer with a letter alone
        assert told["extracted"].tolist()[:-1] == ["incorrect option", "wrong", "wrong", "crash"]
        assert told["official_extracted"].tolist()[:-1] == [0.0] * 4
        assert told.iloc[-1][["extracted", "official_extracted"]].isna().all()
    assert "2 from the store; " in capsys.readouterr().out
    table = compare_extractors(told)
    assert table.loc[("m", "wrong")].to_dict() == {"incorrect option": 1, "unparsed": 1}
    only_letters = with_extracted_options(FOUR, read.iloc[:1], "no-such-model", tmp_path)
    assert only_letters["extracted"].item() == "incorrect option"


@pytest.mark.slow
def test_a_bare_letter_from_the_extractor_is_the_scorers_letter(tmp_path: Path) -> None:
    """The replies are put into the store, as if a model that can do it had been asked."""
    read = read_of(["a", "c", "maybe a toad"], ["ok"] * 3)
    extractor = "field-guide-vlm-few"
    with_extracted_options(FOUR, read, extractor, tmp_path)
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as store, store:
        for words in ("a", "c"):
            asked = "SELECT prompt_id FROM prompts WHERE prompt LIKE ?"
            change = f"UPDATE answers SET raw = ? WHERE prompt_id IN ({asked})"
            store.execute(change, (f" {words.upper()}", f"%Model Response: {words}\\n%"))
    told = with_extracted_options(FOUR, read, extractor, tmp_path)
    assert told["extracted"].tolist() == ["correct option", "incorrect option", "wrong"]
    assert told["official_extracted"].tolist() == [1.0, 0.0, 0.0]


def test_without_an_extractor_nobody_is_asked_and_what_to_set_is_told(tmp_path: Path) -> None:
    told = with_extracted_options(FOUR, read_of(["A", "b"], ["ok"] * 2), "", tmp_path)
    first, second = told["extracted"]
    assert first == "correct option"
    assert "`extractor`" in second
    assert told["official_extracted"].isna().all()
    assert list(tmp_path.iterdir()) == []
    assert compare_extractors(told).index.to_list() == [("m", second)]
    assert compare_extractors(told.iloc[:1]).empty
