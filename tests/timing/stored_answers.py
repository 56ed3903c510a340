"""What the answer store costs beside a model that takes no time, and how long a finished
experiment of 100,000 answers takes to be read: `python -m tests.timing.stored_answers`.

Queries, pools and prompts are of the size of Visual-RAG's, pictures are of one pixel.
Nothing here is asserted.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from PIL import Image

from vrag_kit.generation import (
    Reply,
    ask_models,
    gt_clue,
    non_clue,
    one_in_k,
    zero_shot,
)
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark, Context, Document, Prompt, Query

QUERIES, POOL, CLUES = 374, 265, 16
ANSWERS = 100_000


@dataclass(frozen=True, slots=True)
class Pixel:
    """A picture of one pixel; implements `LazyImage`."""

    number: int
    where: str
    """As long as a path of iNaturalist's."""

    @property
    def stamp(self) -> str:
        """Never changes."""
        return f"100000-{self.number}"

    def data(self) -> bytes:
        """Nobody asks for its file."""
        raise NotImplementedError

    def open(self) -> Image.Image:
        """A colour of its own."""
        return Image.new(
            "RGB", (1, 1), (self.number >> 16, self.number >> 8 & 255, self.number & 255)
        )


@dataclass(slots=True)
class Instant:
    """A model of one's own that answers at once (`CustomGenerator`)."""

    name: str
    batched: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str:
        """Its name."""
        return self.name

    def generate(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """The same words, each time."""
        words = "The hindwings are not folded in the first picture.\nAnswer: red"
        return [Reply(raw=words, tokens={"prompt": 4000, "completion": 20}) for _ in prompts]


def pools() -> Benchmark:
    """Questions that have a pool of pictures each."""
    queries, corpus, qrels = {}, {}, {}
    for number in range(QUERIES):
        query_id = f"q{number:03d}"
        text = f"What color are the undersides of the wings of species {number}?"
        queries[query_id] = Query(query_id=query_id, text=text, answers=("red",), group=query_id)
        labels = {}
        for place in range(POOL):
            file = f"00001_Animalia_Chordata_Aves_Anser_anser/{query_id}-{place:030d}.jpg"
            image = Pixel(number * POOL + place, f"data/inat21/train/{file}")
            labels[f"{query_id}-{place}"] = int(place < CLUES)
            corpus[f"{query_id}-{place}"] = Document(doc_id=f"{query_id}-{place}", image=image)
        qrels[query_id] = labels
    return Benchmark(
        name="pools",
        fingerprint="pools",
        queries=queries,
        corpus=corpus,
        qrels=qrels,
        pools={query_id: tuple(labels) for query_id, labels in qrels.items()},
    )


def bare(store: Path) -> int:
    """Read all rows and what they hold, by SQLite and JSON alone."""
    columns = "answer_id, status, detail, sample, raw, fields, sent, tokens"
    with contextlib.closing(sqlite3.connect(store)) as db:
        rows = db.execute(f"SELECT {columns} FROM answers").fetchall()
    return len([[json.loads(text) for text in row[5:]] for row in rows])


def main(answers: int) -> None:
    """Ask models once, and read all their answers again."""
    benchmark = pools()
    contexts: list[Context] = zero_shot(benchmark) + gt_clue(benchmark) + non_clue(benchmark)
    contexts += one_in_k(benchmark)
    models = [
        Instant(f"model-{number}") for number in range(max(1, round(answers / len(contexts))))
    ]
    shown = sum(len(context.doc_ids) for context in contexts) / len(contexts)
    print(f"{len(models)} models, {len(contexts):,} prompts of {shown:.1f} pictures on average")
    hardware = {"batch_size": 256}
    with tempfile.TemporaryDirectory() as folder:
        for title in ("asked", "read"):
            began = time.perf_counter()
            worked = time.process_time()
            with contextlib.redirect_stdout(io.StringIO()):
                table = ask_models(
                    models, benchmark, contexts, folder, prompts=PROMPTS, hardware=hardware
                )
            size = (Path(folder) / "answers.sqlite").stat().st_size
            print(
                f"{len(table):,} answers {title} in {time.perf_counter() - began:.1f} s, of"
                f" which the processor {time.process_time() - worked:.1f} s;"
                f" {size / 2**20:,.0f} MB (aim: 100,000 read in under 3 s)",
                flush=True,
            )
        began = time.perf_counter()
        count = bare(Path(folder) / "answers.sqlite")
        print(
            f"{count:,} rows and what they hold, by SQLite and JSON alone:"
            f" {time.perf_counter() - began:.1f} s"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ANSWERS)
