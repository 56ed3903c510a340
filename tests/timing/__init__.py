"""Scripts that time things: `python -m tests.timing.search`, and so on. They share the tests'
helpers. Nothing in them is asserted about time, for machines are noisy.
"""

import contextlib
import io
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities


def seconds(*tasks: Callable[[], object], repeats: int = 3) -> list[float]:
    """Median wall time of each task; the tasks take turns, so that noise hits all alike."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats):
        for task, spent in zip(tasks, times, strict=True):
            began = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                task()
            spent.append(time.perf_counter() - began)
    return [median(spent) for spent in times]


class FreeEncoder:
    """An encoder that costs nothing: the vectors of queries, and of prepared documents, which are
    numbers, are rows of a table.
    """

    name = "free"
    fingerprint = "0" * 64
    normalized = False
    modalities = InputModalities()
    document_key = DocumentKey(name, fingerprint)

    def __init__(self, vectors: np.ndarray, number_of: Callable[[object], int] = hash) -> None:
        self.prompts: dict[str, str] = {}
        self.vectors = vectors
        self.prepare = number_of

    def encode_queries(self, queries: Sequence[object]) -> np.ndarray:
        return self.vectors[np.arange(len(queries)) % len(self.vectors)]

    def encode_documents(self, prepared: Sequence[int]) -> np.ndarray:
        return self.vectors[np.array(prepared) % len(self.vectors)]
