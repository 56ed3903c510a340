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

import io
import os
import shutil
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from vrag_kit.benchmarks.mrag_bench import CORPUS
from vrag_kit.benchmarks.mrag_bench_classes import class_of
from vrag_kit.fieldguide.drawn import Drawing, check_edition, draw_once, drawn_by, make_room
from vrag_kit.fieldguide.scenarios.edition import (
    EDITIONS,
    N_SHARDS,
    Edition,
    PlannedQuestion,
    PlannedTopic,
    plan,
    strays,
)
from vrag_kit.fieldguide.scenarios.names import encoded, encoded_again, picture_name
from vrag_kit.fieldguide.scenarios.perspective import whole
from vrag_kit.fieldguide.scenarios.rows import Row, write_shards
from vrag_kit.fieldguide.scenarios.table import SCENARIOS
from vrag_kit.fieldguide.scenarios.texts import TEXTS, write_texts
from vrag_kit.fieldguide.scenarios.topics import SpeciesTopic
from vrag_kit.fieldguide.traits import stream
from vrag_kit.files import write_file
from vrag_kit.plain import Json
from vrag_kit.processes import new_workers
from vrag_kit.progress import track

LABELS = "labels.csv"
N_RETRIEVED = 5
_DRAWN_BY = ("parquet", "shapes", "traits", "views", "album")


def draw_mrag_bench(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Draw an edition ("full": 540 questions, "small": 63) into `folder` unless it is
    there already; returns the folder.

    `workers` processes draw at once (default: one a core). Raises `VragError` for an
    unknown edition, for a folder that holds other data or cannot be written, and in a
    script that draws without `if __name__ == "__main__":`.
    """
    check_edition(edition, EDITIONS, "the drawn MRAG-Bench")
    own = sorted(Path(__file__).parent.glob("*.py"))
    told = {"edition": edition, **asdict(EDITIONS[edition]), "drawn_by": drawn_by(_DRAWN_BY, own)}
    draw = partial(_draw, EDITIONS[edition], workers or os.cpu_count() or 1)
    drawing = Drawing(what="MRAG-Bench", by="draw_mrag_bench", megabytes=120)
    return draw_once(folder, told, draw, drawing)


def _draw(edition: Edition, workers: int, folder: Path, note: Json) -> None:
    corpus = folder / CORPUS
    rooms = (corpus, folder / "data")
    make_room(folder, rooms, note)
    for begun in rooms:
        shutil.rmtree(begun, ignore_errors=True)
    corpus.mkdir()
    planned = plan(edition)
    drawn: list[_Drawn] = []
    with new_workers(workers) as pool:
        made = pool.map(partial(_draw_topic, edition, corpus), planned, chunksize=4)
        drawn += track(made, f"drawing MRAG-Bench ({edition.seed})", len(planned), "topics")
    rows = _rows(edition, drawn, corpus)
    write_shards(rows, folder / "data", N_SHARDS)
    write_file(folder / LABELS, _labels(drawn))
    write_texts(edition, planned, {row.question.name: row.id for row in rows}, folder / TEXTS)


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
class _Drawn:
    """A drawn topic."""

    asked: tuple[_Asked, ...]
    examples: tuple[str, ...]  # files in the corpus, asked about or not
    likeness: dict[str, np.ndarray]  # file in the corpus → colour histogram


class _Files:
    """Pictures of a topic, written to the corpus."""

    def __init__(self, corpus: Path, planned: PlannedTopic) -> None:
        self.likeness: dict[str, np.ndarray] = {}
        self._corpus = corpus
        self._name = partial(picture_name, planned.scenario, planned.topic, planned.index)

    def name(self, role: str, which: int) -> str:
        """The name of a picture."""
        return self._name(role, which)

    def write(self, picture: Image.Image, role: str, which: int) -> str:
        """Write a picture; returns its name."""
        name = self.name(role, which)
        data = encoded(picture, name)
        with (self._corpus / name).open("xb") as file:  # no name comes twice
            file.write(data)
        self.likeness[name] = _likeness(data)
        return name


def _draw_topic(edition: Edition, corpus: Path, planned: PlannedTopic) -> _Drawn:
    """Draw all pictures of a topic into the corpus."""
    about, size = planned.topic, edition.size
    files = _Files(corpus, planned)
    pool = []
    for i in range(planned.pool):
        pool.append(files.write(about.example(f"{about.key}/gt/{i}", size), "gt", i))
    for i, stray in enumerate(strays(edition, planned)):
        files.write(stray.example(f"{stray.key}/fp", size), "fp", i)
    asked = []
    for i, question in enumerate(planned.questions):
        shown = about.query(question.name, size)
        kept = shown
        if planned.scenario == "partial" and isinstance(about, SpeciesTopic):
            kept = whole(about.species, about.part, question.name, size)
        own = files.write(kept, "input", i)
        image = encoded(shown, own)
        examples = tuple(files.name("gt", example) for example in question.examples)
        like = _likeness(image)
        what = about.what
        asked.append(_Asked(planned.scenario, what, question, image, own, examples, like))
    return _Drawn(tuple(asked), tuple(pool), files.likeness)


def _labels(drawn: list[_Drawn]) -> str:
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


def _rows(edition: Edition, drawn: list[_Drawn], corpus: Path) -> list[Row]:
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


def _row(row_id: str, asked: _Asked, retrieved: tuple[bytes, ...], corpus: Path) -> Row:
    scenario, question = SCENARIOS[asked.scenario], asked.question
    image = asked.image
    examples = [(corpus / name).read_bytes() for name in asked.examples]
    if asked.scenario == "incomplete" and question.number % 2:
        image = encoded_again(image)
        examples = [encoded_again(data) for data in examples]
    if asked.scenario == "angle" and question.number % 20 == 0:
        examples[4] = examples[0]  # as in 18 rows of the real data: one picture twice
    return Row(row_id, scenario, question, asked.what, (image, tuple(examples), retrieved))
