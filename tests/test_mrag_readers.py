"""The choice reader beside the official scorer: on labelled answers, and on a run's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vrag_kit.generation import ask_models
from vrag_kit.judging import judge_answers
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.choices import extraction_test_set
from vrag_kit.types import Benchmark, Query

LILIES = ("turkscap", "toad", "martagon", "tiger lily")
SAID = ("B", "b", "A cat with a kitten", "The flower is surely a toad lily.", "A or B", "")


@pytest.fixture(scope="module")
def lilies() -> Benchmark:
    queries = {
        str(place): Query(
            query_id=str(place), text="?", choices=LILIES, answers=("toad",), group=str(place)
        )
        for place in range(len(SAID) + 1)
    }
    qrels = {name: {} for name in queries}
    return Benchmark(name="lilies", fingerprint="", queries=queries, corpus={}, qrels=qrels)


@pytest.fixture(scope="module")
def read(lilies: Benchmark) -> pd.DataFrame:
    """What was said, the last call failed."""
    status = ["ok"] * (len(SAID) - 1) + ["empty", "timeout"]
    rows = [
        {
            "model": "m",
            "setting": "no_rag",
            "query_id": str(place),
            "group": str(place),
            "answer": said,
            "status": how,
            "detail": "",
        }
        for place, (said, how) in enumerate(zip((*SAID, None), status, strict=True))
    ]
    return paper.choices.with_official_score(
        judge_answers(paper.choices.MultipleChoiceJudge(), lilies, pd.DataFrame(rows)), lilies
    )


def test_labelled_answers_come_with_their_options_and_what_was_seen_of_the_scorer() -> None:
    table = extraction_test_set()
    assert table["source"].value_counts().to_dict() == {"adversarial": 68, "rule test cases": 16}
    assert (table["official"] != "").tolist() == (table["source"] == "rule test cases").tolist()
    assert table["options"].map(len).eq(4).all()


def test_ours_reads_all_labelled_answers_and_the_official_scorer_guesses_or_crashes() -> None:
    table = paper.choices.evaluate_extractors().set_index("raw")
    assert set(table["ours_is"]) == {"correct"}
    assert table.loc["The answer is B, the toad lily.", "official_is"] == "crash"
    assert table.loc["**B**", "official_is"] == "falls back to GPT-3.5"
    another = "misread"
    for raw in ("A cat with a kitten", "A or B", "Answer is B because A has wings"):
        assert table.loc[raw, "official_is"] == another
    assert table.loc["", "official_is"] == "correct"


def test_a_score_lies_between_all_that_is_unread_as_wrong_and_as_right(
    read: pd.DataFrame,
) -> None:
    assert read["official_is"].tolist()[:-1] == [
        "correct option",  # B
        "falls back to GPT-3.5",  # b
        "incorrect option",  # A, the article
        "crash",
        "correct option",  # B, the last of two
        "wrong",  # empty
    ]
    assert read["ours_is"].tolist()[:-1] == [
        "correct option",
        "correct option",
        "unparsed",
        "correct option",
        "ambiguous",
        "empty",
    ]
    table = paper.choices.accuracy_by_extractor(read, weights=None).set_index("extraction")
    assert table["value"].tolist() == pytest.approx([100 * 3 / 6, 100 * 2 / 6, 100 * 4 / 6])
    assert table["n"].tolist() == [6] * 3
    assert table["n_failed"].tolist() == [1] * 3


def test_a_call_that_failed_has_no_reading(read: pd.DataFrame) -> None:
    last = read.iloc[-1]
    assert np.isnan(last["official_low"])
    assert pd.isna(last["rule"])
    assert paper.choices.rule_counts(read)["m"].to_dict() == {
        "empty": "1 (0 right)",
        "whole answer": "2 (2 right)",
        "tagged": "–",
        "leading letter": "–",
        "letter in text": "1 (0 right)",
        "option text": "1 (1 right)",
        "declined": "–",
        "unparsed": "1 (0 right)",
    }


def test_a_run_ends_at_its_first_crash_and_without_a_key_before(read: pd.DataFrame) -> None:
    (row,) = paper.choices.official_run_ends(read).to_dict("records")
    assert row == {
        "model": "m",
        "setting": "no_rag",
        "n": 6,
        "letter": 3,
        "wrong": 1,
        "falls back to GPT-3.5": 1,
        "crash": 1,
        "with_key": "crash at answer 4",
        "without_key": "hang at answer 2",
    }
    assert (
        paper.choices.official_run_ends(read.head(1))["without_key"].item() == "a score is written"
    )


def test_every_answer_has_one_outcome_for_each_extraction(read: pd.DataFrame) -> None:
    shares = paper.figures.extraction_shares(read, "model")
    assert (shares["n"] == 6).all()
    assert shares.groupby("extraction")["value"].sum().tolist() == pytest.approx([100, 100])
    official = shares[shares["extraction"] == "official"].set_index("metric")["value"]
    assert official[["missing", "asks", "crash"]].tolist() == pytest.approx([100 / 6] * 3)
    (axis,) = paper.figures.extraction_figure(shares, "right", "wrong", "A finding").axes
    rows = [label.get_text() for label in axis.get_yticklabels()]
    assert rows == ["m · official", "m · our parser"]


def test_without_a_model_no_bar_is_drawn(lilies: Benchmark, tmp_path: Path) -> None:
    none = ask_models([], lilies, [], tmp_path, prompts=paper.settings.load_prompts("paper"))
    read = paper.choices.with_official_score(
        judge_answers(paper.choices.MultipleChoiceJudge(), lilies, none), lilies
    )
    assert list(paper.choices.rule_counts(read).columns) == ["what it says"]
    assert paper.choices.official_run_ends(read).empty
    accuracy = paper.choices.accuracy_by_extractor(read, weights=None)
    assert accuracy.empty
    shares = paper.figures.extraction_shares(read, "model")
    (axis,) = paper.figures.extraction_figure(shares, "right", "wrong", "A finding").axes
    assert axis.get_title(loc="left") == "n = 0 answers"
