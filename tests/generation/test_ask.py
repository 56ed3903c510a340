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
from vrag_kit.generation import ask_models, zero_shot
from vrag_kit.judging import RuleJudge, add_rouge, judge_answers
from vrag_kit.papers.visual_rag.answers import detect_abstention
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

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


def test_empty_and_truncated_answers_are_wrong_and_a_refused_one_has_no_score(
    server: StrangeServer, goose: Benchmark, at: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    server.plans = {part: [reply] for part, reply in REPLIES.items()}
    model = {"model": f"goose@{server.url}", "decoding": {"temperature": 0}}
    for came in (": 5 new;", ": 5 from the store;"):
        answers = ask_models([model], goose, zero_shot(goose), at, prompts=PROMPTS)
        said = capsys.readouterr().out
        for words in (came, "2 failed, such as empty", "1 failed, such as truncated", "refused"):
            assert words in said
    assert answers["status"].tolist() == ["ok", "empty", "empty", "truncated", "refused"]
    assert answers["answer"].tolist()[:4] == ["black", "", "", "the hindwings are"]
    assert pd.isna(answers["answer"][4])
    judged = judge_answers(RuleJudge(), goose, answers)
    assert judged["marks"].tolist() == ["", "empty", "empty", "cut off", ""]
    np.testing.assert_array_equal(judged["score"], [1, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(judged["abstained"], [0, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(add_rouge(goose, answers)["rouge"], [1, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(detect_abstention(judged)["phrase_match"], [0, 0, 0, 0, np.nan])
