"""Processes that ask an endpoint about every context and store the answers; tests kill them.

They are forked from a server that has imported all that they need, so that they are at
work within milliseconds.
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    Hardware,
    Reply,
    gt_clue,
    load_generator,
    non_clue,
    one_in_k,
    zero_shot,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.generators import CostEstimate, Generator, Size
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Prompt

SINGLE = ConversationConfig(prompts=PROMPTS)


class HashingModel(Generator):
    """Answers with a hash of what it was asked, pixels included, and notes every call
    in a file.
    """

    name, fingerprint = "hashing", "hashing-1"

    def __init__(self, calls: Path) -> None:
        self.calls = calls
        self.decoding, self.sent = {"do_sample": False, "max_new_tokens": 4}, {}
        self.deterministic = True

    def estimate_cost(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        return CostEstimate(calls=len(prompts), images=len(sizes), tokens=0)

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        words = [_hash(prompt) for prompt in prompts]
        with self.calls.open("a", encoding="utf-8") as file:
            file.writelines(f"{word}\n" for word in words)
        return [Reply(raw=f"Answer: {word}") for word in words]


def _hash(prompt: Prompt) -> str:
    parts = [part for message in prompt for part in message.parts]
    shown = [part if isinstance(part, str) else part.data() for part in parts]
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:8]


def ask(store_path: Path, tree: Path, url: str) -> pd.DataFrame:
    """The answers' table, for the questions about the photographs in `tree`, by the endpoint."""
    entry = {"model": f"strange@{url}", "concurrency": 3}
    model = load_generator(entry, decoding={"temperature": 0})
    benchmark = load_visual_rag(tree.parent / "annotations.jsonl", tree)
    contexts = zero_shot(benchmark) + gt_clue(benchmark) + non_clue(benchmark)
    contexts += one_in_k(benchmark, ks=[2, 3, 4])
    how = Hardware(batch_size=3)
    with AnswerStore(store_path, lease=10.0) as store:
        return run_conversations(model, benchmark, contexts, store, SINGLE, hardware=how)


def start(store: Path, tree: Path, url: str) -> tuple[BaseProcess, Connection]:
    """A process that says "ready", waits for a word, and asks."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["pytest", "openai", "vrag_kit.papers.visual_rag.judge"])
    here, there = forking.Pipe()
    process = forking.Process(target=_work, args=(there, store, tree, url))
    process.start()
    there.close()
    return process, here


def _work(pipe: Connection, store: Path, tree: Path, url: str) -> None:
    pipe.send("ready")
    pipe.recv()
    ask(store, tree, url)
