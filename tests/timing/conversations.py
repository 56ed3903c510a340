"""Answers a second of conversations of mixed length, turn by turn, against the same
prompts asked as single turns: `python -m tests.timing.conversations`.

The ratio is of medians of interleaved repetitions within one run; nothing is asserted.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.timing.generation import seconds
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    Hardware,
    ask_prompts,
    build_prompt,
    load_generator,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.generators import Generator
from vrag_kit.papers.crag_mm.prompts import PROMPT_SETS
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.types import Benchmark, Context, Prompt, Query, Turn

MODEL = "vrag_kit/synthetic/weights/field-guide-vlm-many"
BATCH, TALKS = 16, 100
LENGTHS = random.Random("lengths").choices(range(2, 7), weights=[3, 7, 20, 37, 33], k=TALKS)
"""As many turns as CRAG-MM's conversations have."""


def talks() -> Benchmark:
    """Conversations about photographs of the small Field Guide."""
    guide = generate_field_guide("small", "data/field-guide-small")
    drawn = load_visual_rag(guide / "annotations.jsonl", guide / "images")
    photos = list(drawn.corpus.values())[:TALKS]
    asked = [query.text for query in drawn.queries.values()]
    queries: dict[str, Query] = {}
    for talk, (photo, length) in enumerate(zip(photos, LENGTHS, strict=True)):
        for turn in range(length):
            words = asked[(talk + turn) % len(asked)]
            name = f"{talk}-{turn}"
            queries[name] = Query(
                query_id=name, text=words, image=photo.image, conversation_id=str(talk), turn=turn
            )
    return Benchmark(name="talks", fingerprint="talks", queries=queries, corpus={}, qrels={})


def measure(generator: Generator, benchmark: Benchmark, layout: str) -> None:
    """Print both speeds in one layout."""
    prompts = PROMPT_SETS[layout]
    contexts = [Context(query_id=each, setting="mm_llm", k=0) for each in benchmark.queries]
    how = Hardware(batch_size=BATCH)
    prompts: list[Prompt] = []

    def turn_by_turn() -> None:
        with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder) / "a") as store:
            talk = ConversationConfig(prompts=prompts)
            table = run_conversations(generator, benchmark, contexts, store, talk, hardware=how)
        told: dict[str, tuple[Turn, ...]] = {}
        prompts.clear()
        for context, answer in zip(contexts, table["answer"], strict=True):
            query = benchmark.queries[context.query_id]
            history = told.get(str(query.conversation_id), ())
            prompts.append(build_prompt(benchmark, context, prompts, history))
            told[str(query.conversation_id)] = (*history, Turn(query.text, str(answer)))

    def at_once() -> None:
        with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder) / "a") as store:
            ask_prompts(generator, prompts, store, owners=list(benchmark.queries), hardware=how)

    in_turns, single = seconds(turn_by_turn, at_once)
    count = len(prompts)
    print(
        f"layout {layout}: {count} turns of {TALKS} conversations. {count / in_turns:.1f} answers/s"
        f" turn by turn / {count / single:.1f} as single turns = {single / in_turns:.2f} (aim at"
        " least 0.8)"
    )


if __name__ == "__main__":
    generator = load_generator(MODEL, decoding={"temperature": 0, "max_new_tokens": 16})
    generator.prepare()
    benchmark = talks()
    for layout in PROMPT_SETS:
        measure(generator, benchmark, layout)
