"""The prompt of Table 5, and what becomes of answers when a real model is asked by it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.papers.mrag_bench import extraction_prompt, with_extracted

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


def test_a_model_is_asked_only_what_the_scorer_asks_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["B", "b", "**toad**", "The flower in the image is a toad lily.", None]
    status = ["ok"] * 4 + ["timeout"]
    answers = pd.DataFrame({"query_id": list("00010"), "answer": said, "status": status})
    for _ in range(2):
        read = with_extracted(FOUR, answers, "field-guide-vlm-few", tmp_path)
        assert read["asked"].tolist() == [False, True, True, False]
        # that model was never taught to answer with a letter alone
        assert read["extracted"].tolist() == ["B", "wrong", "wrong", "crash"]
    assert "2 from the store, 0 new" in capsys.readouterr().out
    assert with_extracted(FOUR, answers.iloc[:1], "no-such-model", tmp_path)["asked"].sum() == 0
