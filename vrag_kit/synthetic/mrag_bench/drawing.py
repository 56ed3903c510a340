"""MRAG-Bench drawn with the guide's organisms, in the layout of the real data set.

    <folder>/data/test-00000-of-00011.parquet … test-000010-of-00011.parquet
                                    the rows; by name, the eleventh stands after the second
    <folder>/image_corpus/…         every picture once, the queries' too; of Partial the
                                    whole pictures in the place of the queries
    <folder>/labels.csv             the class of the pictures whose names do not tell it
    <folder>/texts/…                passages, and which of them answers what
    <folder>/edition.json           edition and hash of the drawing code; complete once all
                                    is written

The same edition gives the same pictures and rows. `retrieved_images` holds the five
nearest pictures of the corpus, without the query's own, by a simple likeness: the
cosine of colour histograms. It stands for the CLIP of the real data set.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path

from vrag_kit.benchmarks.datasets.mrag_bench import CORPUS
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.processes import worker_pool
from vrag_kit.synthetic.generate import EditionSpec, check_edition, clear_outputs, generate_once
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.synthetic.mrag_bench.edition import EDITIONS, N_SHARDS, MragBenchEdition, plan_edition
from vrag_kit.synthetic.mrag_bench.rows import write_shards
from vrag_kit.synthetic.mrag_bench.texts import TEXTS, write_passages
from vrag_kit.synthetic.mrag_bench.topic_drawing import (
    GeneratedTopic,
    generate_topic,
    labels_file,
    topic_rows,
)
from vrag_kit.types import Json

LABELS_FILE = "labels.csv"
_DRAWN_BY = tuple(f"mrag_bench/{name}" for name in ("topic_drawing", "edition", "rows", "texts"))
"""The modules that decide, with all that they import, what is drawn."""


def generate_mrag_bench(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Draw an edition ("full": 540 questions, "small": 63) into `folder` unless it is
    there already; returns the folder.

    `workers` processes draw at once (default: one a core). Raises `VragError` for an
    unknown edition, for a folder that holds other data or cannot be written, and in a
    script that draws without `if __name__ == "__main__":`.
    """
    check_edition(edition, EDITIONS, "the drawn MRAG-Bench")
    told = {
        "edition": edition,
        **asdict(EDITIONS[edition]),
        "drawn_by": generator_version(*_DRAWN_BY),
    }
    draw = partial(_draw, EDITIONS[edition], workers or os.cpu_count() or 1)
    drawing = EditionSpec(what="MRAG-Bench", by="generate_mrag_bench", megabytes=120)
    return generate_once(folder, told, draw, drawing)


def _draw(edition: MragBenchEdition, workers: int, folder: Path, note: Json) -> None:
    corpus = folder / CORPUS
    rooms = (corpus, folder / "data")
    clear_outputs(folder, rooms, note)
    for begun in rooms:
        shutil.rmtree(begun, ignore_errors=True)
    corpus.mkdir()
    planned = plan_edition(edition)
    drawn: list[GeneratedTopic] = []
    with worker_pool(workers) as pool:
        made = pool.map(partial(generate_topic, edition, corpus), planned, chunksize=4)
        drawn += track(made, f"drawing MRAG-Bench ({edition.seed})", len(planned), "topics")
    rows = topic_rows(edition, drawn, corpus)
    write_shards(rows, folder / "data", N_SHARDS)
    write_file(folder / LABELS_FILE, labels_file(drawn))
    write_passages(edition, planned, {row.question.name: row.id for row in rows}, folder / TEXTS)
