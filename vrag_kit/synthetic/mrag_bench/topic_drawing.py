"""Draws a topic of MRAG-Bench's scenarios, and makes rows of the topics that are drawn."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from vrag_kit.benchmarks.datasets.mrag_bench_corpora import class_of
from vrag_kit.synthetic.mrag_bench.edition import (
    MragBenchEdition,
    PlannedQuestion,
    PlannedTopic,
    plan_distractors,
)
from vrag_kit.synthetic.mrag_bench.names import encode_image, image_name, reencode_image
from vrag_kit.synthetic.mrag_bench.perspective import whole
from vrag_kit.synthetic.mrag_bench.rows import MragBenchRow
from vrag_kit.synthetic.mrag_bench.scenarios import SCENARIOS
from vrag_kit.synthetic.mrag_bench.topics import SpeciesTopic
from vrag_kit.synthetic.traits import stream

N_RETRIEVED = 5


@dataclass(frozen=True, slots=True)
class _Asked:
    """A drawn question."""

    scenario: str
    what: str
    question: PlannedQuestion
    image: bytes
    own: str  # the file of its query in the corpus
    examples: tuple[str, ...]  # files in the corpus
    likeness: np.ndarray  # colour histogram of `image`, of unit length


@dataclass(frozen=True, slots=True)
class GeneratedTopic:
    """A drawn topic."""

    asked: tuple[_Asked, ...]
    examples: tuple[str, ...]  # files in the corpus, asked about or not
    likeness: dict[str, np.ndarray]  # file in the corpus → colour histogram


class _Files:
    """Pictures of a topic, written to the corpus."""

    def __init__(self, corpus: Path, planned: PlannedTopic) -> None:
        self.likeness: dict[str, np.ndarray] = {}
        self._corpus = corpus
        self._name = partial(image_name, planned.scenario, planned.topic, planned.index)

    def name(self, role: str, which: int) -> str:
        """The name of a picture."""
        return self._name(role, which)

    def write(self, picture: Image.Image, role: str, which: int) -> str:
        """Write a picture; returns its name."""
        name = self.name(role, which)
        data = encode_image(picture, name)
        with (self._corpus / name).open("xb") as file:  # no name comes twice
            file.write(data)
        self.likeness[name] = _likeness(data)
        return name


def generate_topic(
    edition: MragBenchEdition, corpus: Path, planned: PlannedTopic
) -> GeneratedTopic:
    """Draw all pictures of a topic into the corpus."""
    about, size = planned.topic, edition.size
    files = _Files(corpus, planned)
    pool = []
    for i in range(planned.pool):
        pool.append(files.write(about.example_image(f"{about.key}/gt/{i}", size), "gt", i))
    for i, stray in enumerate(plan_distractors(edition, planned)):
        files.write(stray.example_image(f"{stray.key}/fp", size), "fp", i)
    asked = []
    for i, question in enumerate(planned.questions):
        shown = about.query_image(question.name, size)
        kept = shown
        if planned.scenario == "partial" and isinstance(about, SpeciesTopic):
            kept = whole(about.species, about.part, question.name, size)
        own = files.write(kept, "input", i)
        image = encode_image(shown, own)
        examples = tuple(files.name("gt", example) for example in question.examples)
        like = _likeness(image)
        what = about.what
        asked.append(_Asked(planned.scenario, what, question, image, own, examples, like))
    return GeneratedTopic(tuple(asked), tuple(pool), files.likeness)


def labels_file(drawn: list[GeneratedTopic]) -> str:
    """A class for each topic whose pictures' names tell none."""
    lines = ["file,label"]
    for number, each in enumerate(drawn):
        for name in each.examples:
            if not class_of(name, {}):
                lines.append(f"{name},class-{number:04d}")
    return "\n".join(lines) + "\n"


def _likeness(data: bytes) -> np.ndarray:
    """Root of the colour histogram, 6 × 6 × 6 bins, of the middle of a picture."""
    with Image.open(io.BytesIO(data)) as file:
        small = np.asarray(file.convert("RGB").resize((48, 48), Image.Resampling.BOX))
    bins = small[6:42, 6:42].reshape(-1, 3).astype(np.int64) * 6 // 256
    counts = np.bincount(bins @ np.array([36, 6, 1]), minlength=216)
    root = np.sqrt(counts.astype(np.float64))
    unit: np.ndarray = root / np.linalg.norm(root)
    return unit


def topic_rows(
    edition: MragBenchEdition, drawn: list[GeneratedTopic], corpus: Path
) -> list[MragBenchRow]:
    """The rows in a shuffled order, numbered from 0."""
    likeness: dict[str, np.ndarray] = {}
    every: list[_Asked] = []
    for topic_drawn in drawn:
        likeness |= topic_drawn.likeness
        every += topic_drawn.asked
    files = sorted(likeness)
    table = np.stack([likeness[name] for name in files])
    rows = []
    for number, place in enumerate(stream(edition.seed, "rows").permutation(len(every))):
        asked = every[place]
        scores = table @ asked.likeness
        scores[files.index(asked.own)] = -1.0
        nearest = np.argsort(-scores, kind="stable")[:N_RETRIEVED]
        found = tuple((corpus / files[i]).read_bytes() for i in nearest)
        rows.append(_row(str(number), asked, found, corpus))
    return rows


def _row(row_id: str, asked: _Asked, retrieved: tuple[bytes, ...], corpus: Path) -> MragBenchRow:
    scenario, question = SCENARIOS[asked.scenario], asked.question
    image = asked.image
    examples = [(corpus / name).read_bytes() for name in asked.examples]
    if asked.scenario == "incomplete" and question.number % 2:
        image = reencode_image(image)
        examples = [reencode_image(data) for data in examples]
    if asked.scenario == "angle" and question.number % 20 == 0:
        examples[4] = examples[0]  # as in 18 rows of the real data: one picture twice
    return MragBenchRow(row_id, scenario, question, asked.what, (image, tuple(examples), retrieved))
