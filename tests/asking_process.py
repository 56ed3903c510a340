"""A process that asks about every context and stores the answers: `python
asking_process.py STORE TREE CALLS`, CALLS a file in which a slow model notes its calls,
or the URL of an endpoint. Tests kill it.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.generation import (
    AnswerStore,
    Asking,
    Forecast,
    Generator,
    Reply,
    ask_all,
    gt_clue,
    load_generator,
    non_clue,
    one_in_k,
    zero_shot,
)
from vrag_kit.generation.generator import Size
from vrag_kit.papers.visual_rag.wording import WORDING
from vrag_kit.types import Prompt


class SlowModel:
    """Answers with a hash of what it was asked, pixels included, and notes every call
    in a file.
    """

    name, fingerprint = "slow", "slow-1"

    def __init__(self, calls: Path, seconds: float) -> None:
        self.calls, self.seconds, self.decoding, self.sent = (
            calls,
            seconds,
            {"do_sample": False, "max_new_tokens": 4},
            {},
        )
        self.deterministic, self.batched, self.concurrency, self.max_cost = True, True, 1, None

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        return Forecast(calls=len(prompts), images=len(sizes), tokens=0)

    def prepare(self) -> None:
        """It is always ready."""

    def missing(self) -> str:
        return ""

    def cost(self, tokens: Mapping[str, int]) -> float:
        return 0.0

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        time.sleep(self.seconds)
        words = [
            hashlib.sha256(
                repr(
                    [
                        part if isinstance(part, str) else part.data()
                        for message in prompt
                        for part in message.parts
                    ]
                ).encode()
            ).hexdigest()[:8]
            for prompt in prompts
        ]
        with self.calls.open("a", encoding="utf-8") as file:
            file.writelines(f"{word}\n" for word in words)
        return [Reply(raw=f"Answer: {word}") for word in words]


def ask(store_path: Path, tree: Path, calls: Path | str, seconds: float = 0.02) -> pd.DataFrame:
    """The answers' table, for the questions about the photographs in `tree`, by the
    slow model or the endpoint at a URL.
    """
    model: Generator = (
        SlowModel(calls, seconds)
        if isinstance(calls, Path)
        else load_generator({"model": f"strange@{calls}", "concurrency": 3}, decoding="greedy")
    )
    benchmark = load_visual_rag(tree.parent / "annotations.jsonl", tree)
    contexts = (
        zero_shot(benchmark)
        + gt_clue(benchmark)
        + non_clue(benchmark)
        + one_in_k(benchmark, ks=[2, 3, 4])
    )
    with AnswerStore(store_path, lease=1.0) as store:
        return ask_all(model, benchmark, contexts, store, wording=WORDING, how=Asking(batch_size=3))


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    ask(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        sys.argv[3] if sys.argv[3].startswith("http") else Path(sys.argv[3]),
        seconds=0.15,
    )
