"""What a search by words costs: `python -m tests.timing.word_search`.

8,306 sentences, as many as Chart-MRAG's corpus has, and 10,000 pages of 150 words; words
are as unequal as those of a language (Zipf). Wall and processor time of indexing with one
question, and of a further question, medians of three; nothing is asserted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import numpy as np

from tests import factories
from vrag_kit.retrieval import reciprocal_rank_fusion
from vrag_kit.retrieval.hybrid import bm25_run
from vrag_kit.types import Document, Query

CORPORA = {"sentences": (8_306, 20), "pages": (10_000, 150)}
"""Texts and words of each; the aim is 1 s for indexing with one question."""
QUESTIONS = 1_000
REPEATS = 3


def main() -> None:
    """Print what each corpus takes, and what fusing two runs does."""
    rng = np.random.default_rng(0)
    runs = {}
    for name, (count, length) in CORPORA.items():
        texts = list(draw_texts(rng, count, length))
        documents = [
            Document(doc_id=f"d{number:05d}", text=text) for number, text in enumerate(texts)
        ]
        queries = [
            Query(query_id=f"q{number}", text=text)
            for number, text in enumerate(draw_texts(rng, QUESTIONS, 12))
        ]
        whole = factories.benchmark(queries, documents)
        ask_one = partial(bm25_run, whole.subset(["q0"]), 10)
        one = [spent(ask_one) for _ in range(REPEATS)]
        wall, busy = median(each[0] for each in one), median(each[1] for each in one)
        began = time.process_time()
        runs[name] = bm25_run(whole, 100)
        further = (time.process_time() - began - busy) / (QUESTIONS - 1)
        print(
            f"BM25 over {count:,} {name} of {length} words: {wall:.2f} s to index and ask one"
            f" question ({busy:.2f} s of processor time; aim 1 s), {1000 * further:.1f} ms of"
            " processor time for each further question with k = 100"
        )
    _, busy = spent(partial(reciprocal_rank_fusion, runs))
    print(f"fusing two runs of {QUESTIONS:,} questions: {busy:.2f} s of processor time")


def draw_texts(rng: np.random.Generator, count: int, length: int) -> Iterator[str]:
    """Texts of so many words."""
    for _ in range(count):
        yield " ".join(f"w{number}" for number in rng.zipf(1.2, length) % 50_000)


def spent(task: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time of a task."""
    wall, busy = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - wall, time.process_time() - busy


if __name__ == "__main__":
    main()
