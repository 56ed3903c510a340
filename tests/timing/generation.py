"""Answers a second, end to end against bare batched `generate`, whose inputs are ready
before, and against the loop that one would write instead; and what reused vision features
save: `python -m tests.timing.generation`.

All ratios are within one run, medians of interleaved repetitions; nothing here is
asserted.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from tests.own_way import prepared
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.config import Workspace
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
from vrag_kit.generation.store_layout import ImageInfo, StoredPrompt
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.types import Answer, Benchmark, Context, LazyImage

SINGLE = ConversationConfig(prompts=PROMPTS)


MODEL = "vrag_kit/synthetic/weights/field-guide-vlm-many"
BATCH, REPEATS = 32, 3


class TimedStore(AnswerStore):
    """A store that knows how long it was at work, in seconds."""

    at_work = hashing = 0.0

    def _timed(self, task: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        try:
            return task()
        finally:
            self.at_work += time.perf_counter() - began

    def image_info(self, images: Iterable[LazyImage]) -> dict[str, ImageInfo]:
        """As the store's."""
        began = time.perf_counter()
        try:
            return super().image_info(images)
        finally:
            self.hashing += time.perf_counter() - began

    def read(self, answer_ids: Sequence[str]) -> dict[str, Answer]:
        """As the store's."""
        return self._timed(lambda: super(TimedStore, self).read(answer_ids))

    def claim(
        self, answer_ids: Sequence[str], *, retry: Mapping[str, float] | None = None
    ) -> list[str]:
        """As the store's."""
        return self._timed(lambda: super(TimedStore, self).claim(answer_ids, retry=retry))

    def write(self, answers: Iterable[Answer], prompts: Mapping[str, StoredPrompt]) -> None:
        """As the store's."""
        self._timed(lambda: super(TimedStore, self).write(answers, prompts))


def seconds(*tasks: Callable[[], object]) -> list[float]:
    """Median wall time of each task; the tasks take turns, so that noise hits all
    alike.
    """
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(REPEATS):
        for task, spent in zip(tasks, times, strict=True):
            began = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                task()
            spent.append(time.perf_counter() - began)
    return [median(spent) for spent in times]


def measure(
    generator: LocalGenerator, benchmark: Benchmark, contexts: list[Context], title: str
) -> None:
    """One table row: end to end, bare generate, and the kit without reuse."""
    unique = {(c.query_id, PROMPTS.template_for(c).name, c.doc_ids): c for c in contexts}
    prompts = [
        build_prompt(benchmark, c, PROMPTS)
        for c in sorted(unique.values(), key=lambda c: len(c.doc_ids))
    ]
    model, processor = generator.loaded.model, generator.processor.processor
    starts = range(0, len(prompts), BATCH)
    inputs = [prepared(processor, prompts[start : start + BATCH]) for start in starts]

    stores: list[float] = []  # shares of the whole
    hashings: list[float] = []

    def whole(reuse: bool) -> None:
        generator.loaded.vision_cache = VisionCache(model, generator.processor) if reuse else None
        with (
            tempfile.TemporaryDirectory() as folder,
            TimedStore(Path(folder) / "answers.sqlite") as store,
        ):
            began = time.perf_counter()
            run_conversations(
                generator,
                benchmark,
                contexts,
                store,
                SINGLE,
                at=Workspace(batch_size=BATCH),
            )
            took = time.perf_counter() - began
            stores.append(store.at_work / took)
            hashings.append(store.hashing / took)

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
    whole(True)
    n = len(prompts)
    print(
        f"{title}: {n} prompts. end to end {n / with_reuse:.1f} answers/s / bare generate"
        f" {n / plain:.1f} = {plain / with_reuse:.2f} (aim at least 0.9)"
    )
    print(
        f"    a plain loop that opens pictures, prepares and generates {n / loop:.1f} answers/s:"
        f" ours is {loop / with_reuse:.2f} times as fast"
    )
    print(
        f"    the store's part is {100 * median(stores):.1f} % (aim under 3), and"
        f" {100 * median(hashings):.1f} % to decode and hash each picture once"
    )
    print(
        f"    without reuse {n / without:.1f} answers/s: reuse is {without / with_reuse:.2f} times"
        " as fast"
    )


if __name__ == "__main__":
    print(f"{torch.get_num_threads()} torch threads, batches of {BATCH}, median of {REPEATS}")
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
