"""Draws the topics of an edition, and makes rows of them: MRAG-Bench's columns, in Parquet shards
that are named, and so sorted, as the real ones are.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from vrag_kit.benchmarks.datasets.mrag_bench_corpora import class_of
from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_bench.edition import (
    MragBenchEdition,
    PlannedQuestion,
    PlannedTopic,
    plan_distractors,
)
from vrag_kit.synthetic.mrag_bench.names import encode_image, image_name, reencode_image
from vrag_kit.synthetic.mrag_bench.perspective import whole
from vrag_kit.synthetic.mrag_bench.scenarios import SCENARIOS
from vrag_kit.synthetic.mrag_bench.topics import SpeciesTopic
from vrag_kit.synthetic.parquet import IMAGE, IMAGES, TEXT, image_cell, parquet_bytes
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Json

N_RETRIEVED = 5
_TEXTS = ("question", "A", "B", "C", "D", "answer_choice", "answer", "image_type", "source")
_COLUMNS = {
    **dict.fromkeys(("id", "aspect", "scenario"), TEXT),
    "image": IMAGE,
    "gt_images": IMAGES,
    **dict.fromkeys(_TEXTS, TEXT),
    "retrieved_images": IMAGES,
}


@dataclass(frozen=True, slots=True)
class DrawnTopic:
    """A topic whose images are in the corpus."""

    rows: Mapping[str, Json]  # name of a question → its row but for id and retrieved images
    query_files: Mapping[str, str]  # name of a question → the file of its query in the corpus
    examples: tuple[str, ...]  # files in the corpus, of a question or not
    histograms: dict[str, np.ndarray]  # file in the corpus → colour histogram


def draw_topic(edition: MragBenchEdition, corpus: Path, planned: PlannedTopic) -> DrawnTopic:
    """Draw all images of a topic into the corpus."""
    topic, size = planned.topic, edition.size
    histograms: dict[str, np.ndarray] = {}

    def name(role: str, which: int) -> str:
        return image_name(planned.scenario, topic, planned.index, role, which)

    def write(image: Image.Image, role: str, which: int) -> str:
        file = name(role, which)
        data = encode_image(image, file)
        with (corpus / file).open("xb") as opened:  # no name comes twice
            opened.write(data)
        histograms[file] = _histogram(data)
        return file

    pool = [
        write(topic.example_image(f"{topic.key}/gt/{i}", size), "gt", i)
        for i in range(planned.pool)
    ]
    for i, stray in enumerate(plan_distractors(edition, planned)):
        write(stray.example_image(f"{stray.key}/fp", size), "fp", i)
    rows, query_files = {}, {}
    for i, question in enumerate(planned.questions):
        shown = in_corpus = topic.query_image(question.name, size)
        if planned.scenario == "partial" and isinstance(topic, SpeciesTopic):
            in_corpus = whole(topic.species, topic.part, question.name, size)
        file = query_files[question.name] = write(in_corpus, "input", i)
        examples = [(corpus / name("gt", example)).read_bytes() for example in question.examples]
        image = encode_image(shown, file)
        rows[question.name] = _row(planned, question, image, examples)
    return DrawnTopic(rows, query_files, tuple(pool), histograms)


def labels_file(topics: Sequence[DrawnTopic]) -> str:
    """Return a CSV with a class for each topic whose images' names do not tell it."""
    lines = ["file,label"]
    for number, topic in enumerate(topics):
        unnamed = [name for name in topic.examples if not class_of(name, {})]
        lines += [f"{name},class-{number:04d}" for name in unnamed]
    return "\n".join(lines) + "\n"


def _histogram(data: bytes) -> np.ndarray:
    """Root of the colour histogram, 6 × 6 × 6 bins, of the middle of an image; of unit length."""
    with Image.open(io.BytesIO(data)) as file:
        small = np.asarray(file.convert("RGB").resize((48, 48), Image.Resampling.BOX))
    bins = small[6:42, 6:42].reshape(-1, 3).astype(np.int64) * 6 // 256
    counts = np.bincount(bins @ np.array([36, 6, 1]), minlength=216)
    root = np.sqrt(counts.astype(np.float64))
    unit: np.ndarray = root / np.linalg.norm(root)
    return unit


def topic_rows(
    edition: MragBenchEdition, topics: Sequence[DrawnTopic], corpus: Path
) -> tuple[list[Json], dict[str, str]]:
    """Return the rows in a shuffled order, numbered from 0, and each question's name → its id.

    `retrieved_images` are the nearest by cosine of colour histograms, without the query's own.
    """
    histograms: dict[str, np.ndarray] = {}
    query_files: dict[str, str] = {}
    planned: dict[str, Json] = {}
    for topic in topics:
        histograms |= topic.histograms
        query_files |= topic.query_files
        planned |= topic.rows
    names = list(planned)
    files = sorted(histograms)
    table = np.stack([histograms[name] for name in files])
    rows, ids = [], {}
    for number, place in enumerate(stream(edition.seed, "rows").permutation(len(names))):
        name = names[place]
        row = planned[name]
        scores = table @ _histogram(row["image"]["bytes"])
        scores[files.index(query_files[name])] = -1.0
        nearest = np.argsort(-scores, kind="stable")[:N_RETRIEVED]
        retrieved = [image_cell((corpus / files[i]).read_bytes()) for i in nearest]
        rows.append({"id": str(number), **row, "retrieved_images": retrieved})
        ids[name] = str(number)
    return rows, ids


def _row(
    planned: PlannedTopic, question: PlannedQuestion, image: bytes, examples: list[bytes]
) -> Json:
    """Column → value, without the id and what is retrieved."""
    scenario = SCENARIOS[planned.scenario]
    if scenario.name == "incomplete" and question.number % 2:
        image = reencode_image(image)
        examples = [reencode_image(data) for data in examples]
    if scenario.name == "angle" and question.number % 20 == 0:
        examples[4] = examples[0]  # as in 18 rows of the real data: one image twice
    options = dict(zip("ABCD", question.options, strict=True))
    return {
        "aspect": scenario.aspect,
        "scenario": scenario.label,
        "image": image_cell(image),
        "gt_images": [image_cell(data) for data in examples],
        "question": question.text,
        **options,
        "answer_choice": question.letter,
        "answer": options[question.letter],
        "image_type": planned.topic.what,
        "source": "known species" if question.asks == "name" else "new",
    }


def shard_name(number: int, shards: int) -> str:
    """As in the data set: "test-00009-…", then "test-000010-…", one digit longer."""
    return f"test-0000{number}-of-0000{shards}.parquet"


def write_shards(rows: Sequence[Json], folder: Path, shards: int) -> None:
    """Write the rows, as evenly as possible, into that many Parquet files."""
    for number in range(shards):
        first, last = (len(rows) * edge // shards for edge in (number, number + 1))
        write_file(folder / shard_name(number, shards), parquet_bytes(_COLUMNS, rows[first:last]))
