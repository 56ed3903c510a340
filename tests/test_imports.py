"""What it costs to enter a room: nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODELS = {"torch", "transformers", "torchvision", "open_clip", "openai", "datasets", "faiss"}
STATISTICS = {"scipy", "statsmodels", "sklearn", "seaborn"}
ROOMS = ("judging", "analysis", "plotting", "papers", "papers.visual_rag")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_entered_without_models_and_statistics(room: str) -> None:
    script = f"import sys, vrag_kit.{room}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not (MODELS | STATISTICS) & set(done.stdout.split())


def test_answers_are_judged_by_rule_and_averaged_without_loading_a_model() -> None:
    script = """
import sys
import pandas as pd
from vrag_kit.analysis import accuracy, in_percent
from vrag_kit.judging import judge_all, load_judge
from vrag_kit.types import Benchmark, Query

query = Query(query_id="q", text="What color?", answers=("red",), group="g")
benchmark = Benchmark(name="toy", fingerprint="", queries={"q": query}, corpus={}, qrels={})
arm = {"model": "m", "setting": "zero_shot", "k": 0, "query_id": "q", "group": "g"}
answers = pd.DataFrame([{**arm, "answer": "red", "status": "ok", "detail": ""}])
assert in_percent(accuracy(judge_all(load_judge("rule"), benchmark, answers)))["value"][0] == 100
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not MODELS & set(done.stdout.split())
