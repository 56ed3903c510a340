"""MRAG-Bench drawn with the guide's organisms, in the layout of the real data set.

    <folder>/data/test-00000-of-00011.parquet … test-000010-of-00011.parquet
                                    the rows; by name, the eleventh stands after the second
    <folder>/image_corpus/…         every picture once, the queries' too; of Partial the
                                    whole pictures in the place of the queries
    <folder>/labels.csv             the class of the pictures whose names do not tell it
    <folder>/texts/…                passages, and which of them answers what
    <folder>/edition.json           edition and version; complete once all is written

The same edition gives the same pictures and rows. `retrieved_images` holds the five
nearest pictures of the corpus, without the query's own, by a simple likeness: the
cosine of colour histograms. It stands for the CLIP of the real data set.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from vrag_kit.benchmarks.datasets.mrag_bench import CORPUS
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.processes import available_cores, worker_pool
from vrag_kit.synthetic.generate import generate_once
from vrag_kit.synthetic.mrag_bench.edition import EDITIONS, N_SHARDS, plan_edition
from vrag_kit.synthetic.mrag_bench.rows import draw_topic, labels_file, topic_rows, write_shards
from vrag_kit.synthetic.mrag_bench.texts import TEXTS, write_passages

LABELS_FILE = "labels.csv"


def generate_mrag_bench(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Generate an edition ("full": 540 questions, "small": 63) in `folder` unless it exists;
    returns the folder.

    `workers` processes draw at once (default: one a core). Raises as `generate_once` does.
    """
    draw = partial(_draw, edition, workers or available_cores())
    outputs = (CORPUS, "data")
    return generate_once("field-guide-mrag-bench", edition, EDITIONS, folder, draw, outputs)


def _draw(edition: str, workers: int, folder: Path) -> None:
    corpus, size = folder / CORPUS, EDITIONS[edition]
    for begun in (corpus, folder / "data"):  # an interrupted drawing begins again
        shutil.rmtree(begun, ignore_errors=True)
    corpus.mkdir()
    planned = plan_edition(size)
    with worker_pool(workers) as pool:
        made = pool.map(partial(draw_topic, size, corpus), planned, chunksize=4)
        drawn = list(track(made, f"drawing MRAG-Bench ({size.seed})", len(planned), "topics"))
    rows, ids = topic_rows(size, drawn, corpus)
    write_shards(rows, folder / "data", N_SHARDS)
    write_file(folder / LABELS_FILE, labels_file(drawn))
    write_passages(size, planned, ids, folder / TEXTS)
