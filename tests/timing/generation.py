"""Answers a second, end to end against bare batched `generate`, whose inputs are ready
before, and against the loop that one would write instead; and what reused vision features
save: `python -m tests.timing.generation`.

All ratios are within one run, medians of interleaved repetitions; nothing here is
asserted.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from tests.timing import seconds
from tests.tiny_models import prepared
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    LocalGenerator,
    build_prompt,
    gt_clue,
    load_generator,
    non_clue,
    one_in_k,
    zero_shot,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.local.vision_cache import VisionCache
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.types import Benchmark, Context
from vrag_kit.workspace import Workspace

MODEL = "vrag_kit/synthetic/weights/field-guide-vlm-many"
BATCH = 32


def timed(owner: object, *methods: str) -> Counter[str]:
    """Counts the seconds that an object spends in each of these methods."""
    spent: Counter[str] = Counter()

    def count(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = method(*arguments, **options)
            spent[name] += time.perf_counter() - began
            return found

        return counted

    for name in methods:
        setattr(owner, name, count(name, getattr(owner, name)))
    return spent


def measure(
    generator: LocalGenerator, benchmark: Benchmark, contexts: list[Context], title: str
) -> None:
    """One table row: end to end, bare generate, and the kit without reuse."""
    unique = {(c.query_id, PROMPTS.template_for(c).name, c.doc_ids): c for c in contexts}
    ordered = sorted(unique.values(), key=lambda context: len(context.doc_ids))
    prompts = [build_prompt(benchmark, context, PROMPTS) for context in ordered]
    model, processor = generator.loaded.model, generator.processor.processor
    starts = range(0, len(prompts), BATCH)
    inputs = [prepared(processor, prompts[start : start + BATCH]) for start in starts]

    shares: list[tuple[float, float]] = []  # of the whole: the store's, and of it hashing

    def whole(reuse: bool) -> None:
        generator.loaded.vision_cache = VisionCache(model, generator.processor) if reuse else None
        how = {"at": Workspace(batch_size=BATCH)}
        single = ConversationConfig(prompts=PROMPTS)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with AnswerStore(Path(folder) / "answers.sqlite") as store:
                spent = timed(store, "image_info", "read", "claim", "write")
                run_conversations(generator, benchmark, contexts, store, single, **how)
            hashing = spent.pop("image_info")
            took = time.perf_counter() - began
            shares.append((spent.total() / took, hashing / took))

    @torch.inference_mode()
    def bare() -> None:
        for batch in inputs:
            model.generate(**batch, **generator.decoding)

    @torch.inference_mode()
    def plainly() -> None:
        for start in starts:
            inputs = prepared(processor, prompts[start : start + BATCH])
            model.generate(**inputs, **generator.decoding)

    with_reuse, without, plain, loop = seconds(
        lambda: whole(True), lambda: whole(False), bare, plainly
    )
    at_work, hashing = (100 * median(share) for share in zip(*shares, strict=True))
    n = len(prompts)
    print(
        f"{title}: {n} prompts. end to end {n / with_reuse:.1f} answers/s / bare generate"
        f" {n / plain:.1f} = {plain / with_reuse:.2f} (aim at least 0.9)\n"
        f"    a plain loop that opens images, prepares and generates {n / loop:.1f} answers/s:"
        f" ours is {loop / with_reuse:.2f} times as fast\n"
        f"    the store's part is {at_work:.1f} % (aim under 3), and"
        f" {hashing:.1f} % to decode and hash each image once\n"
        f"    without reuse {n / without:.1f} answers/s: reuse is {without / with_reuse:.2f} times"
        " as fast"
    )


if __name__ == "__main__":
    print(f"{torch.get_num_threads()} torch threads, batches of {BATCH}, medians")
    guide = generate_field_guide("small", "data/field-guide-small")
    benchmark = load_visual_rag(guide / "annotations.jsonl", guide / "images")
    generator = load_generator(MODEL, decoding={"temperature": 0, "max_new_tokens": 16})
    baselines = zero_shot(benchmark) + gt_clue(benchmark) + non_clue(benchmark)
    measure(generator, benchmark, baselines, "baselines (0 or 1 image)")
    measure(
        generator,
        benchmark,
        baselines + one_in_k(benchmark),
        "baselines and 1-in-k (up to 20 images)",
    )
