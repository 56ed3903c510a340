"""What a model leaves empty or cuts off is its answer, and a bad one; what never came is
missing: from the server's reply to the table of means.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from strange_server import StrangeServer

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.config import Workspace
from vrag_kit.generation import ask_models, zero_shot
from vrag_kit.judging import RuleJudge, add_rouge, judge_answers
from vrag_kit.papers.visual_rag.abstention import detect_abstention
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark

REPLIES = {
    "the back": "say Answer: black",
    "the beak": "empty",
    "the feet": "say Answer:",
    "the tail": "truncated",
    "the eyes": "filtered",
}


@pytest.fixture
def goose(write_annotations: Callable[..., Path], tree: Path) -> Benchmark:
    """Five questions, whose right answer is black."""
    questions = [{"question": f"What color is {part}?"} for part in REPLIES]
    return load_visual_rag(write_annotations(*questions), tree)


def ask(server: StrangeServer, goose: Benchmark, at: Workspace) -> pd.DataFrame:
    model = {"model": f"goose@{server.url}", "decoding": {"temperature": 0}}
    return ask_models([model], goose, zero_shot(goose), at, prompts=PROMPTS)


@pytest.fixture
def answers(goose: Benchmark, at: Workspace) -> pd.DataFrame:
    with StrangeServer({part: [reply] for part, reply in REPLIES.items()}) as server:
        return ask(server, goose, at)


def test_a_round_says_what_became_of_its_answers(
    goose: Benchmark, at: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    with StrangeServer({part: [reply] for part, reply in REPLIES.items()}) as server:
        for came in (": 5 new;", ": 5 from the store;"):
            ask(server, goose, at)
            said = capsys.readouterr().out
            assert came in said
            for words in ("2 failed, such as empty", "1 failed, such as truncated", "refused"):
                assert words in said
            assert said.count("counted as wrong") == 2


def test_an_empty_or_cut_off_answer_is_in_the_table_and_a_refused_one_is_missing(
    answers: pd.DataFrame,
) -> None:
    assert answers["status"].tolist() == ["ok", "empty", "empty", "truncated", "refused"]
    assert answers["answer"].tolist()[:4] == ["black", "", "", "the hindwings are"]
    assert answers["answer"].isna().tolist() == [False, False, False, False, True]


def test_it_earns_the_worst_and_is_marked_and_only_what_is_missing_has_no_score(
    goose: Benchmark, answers: pd.DataFrame
) -> None:
    judged = judge_answers(RuleJudge(), goose, answers)
    np.testing.assert_array_equal(judged["score"], [1.0, 0.0, 0.0, 0.0, np.nan])
    np.testing.assert_array_equal(judged["abstained"], [0.0, 0.0, 0.0, 0.0, np.nan])
    assert judged["marks"].tolist() == ["", "empty", "empty", "cut off", ""]
    np.testing.assert_array_equal(add_rouge(goose, answers)["rouge"], [1.0, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(detect_abstention(judged)["phrase_match"], [0, 0, 0, 0, np.nan])


def test_only_what_is_missing_is_asked_again(goose: Benchmark, at: Workspace) -> None:
    with StrangeServer({part: [reply] for part, reply in REPLIES.items()}) as server:
        ask(server, goose, at)
        server.plans = {}
        table = ask(server, goose, at.model_copy(update={"retry_failures": True}))
        assert [server.calls(part) for part in REPLIES] == [1, 1, 1, 1, 2]
    assert table["status"].tolist() == ["ok", "empty", "empty", "truncated", "ok"]
