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

import io
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from vrag_kit.benchmarks.datasets.mrag_bench import CORPUS
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import class_of
from vrag_kit.files import write_file
from vrag_kit.log import track
from vrag_kit.processes import available_cores, worker_pool
from vrag_kit.synthetic.editions import generate_once
from vrag_kit.synthetic.mrag_bench.edition import (
    EDITIONS,
    MragBenchEdition,
    PlannedQuestion,
    PlannedTopic,
    plan_distractors,
    plan_edition,
)
from vrag_kit.synthetic.mrag_bench.passages import TEXTS, write_passages
from vrag_kit.synthetic.mrag_bench.scenario_images import whole
from vrag_kit.synthetic.mrag_bench.topics import SCENARIOS, RegionTopic, SpeciesTopic, Topic
from vrag_kit.synthetic.parquet import IMAGE, IMAGES, TEXT, image_cell, parquet_bytes, shards
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Json

LABELS_FILE = "labels.csv"
_N_SHARDS = 11  # the fewest that show how their names sort
_N_RETRIEVED = 5
_ROLES = ("input", "gt", "fp")
_SIDES = ("North", "Søndre", "Côte d'Azur", "Lower")
_TEXTS = ("question", "A", "B", "C", "D", "answer_choice", "answer", "image_type", "source")
_COLUMNS = {
    **dict.fromkeys(("id", "aspect", "scenario"), TEXT),
    "image": IMAGE,
    "gt_images": IMAGES,
    **dict.fromkeys(_TEXTS, TEXT),
    "retrieved_images": IMAGES,
}


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
        made = pool.map(partial(_draw_topic, size, corpus), planned, chunksize=4)
        drawn = list(track(made, f"drawing MRAG-Bench ({size.seed})", len(planned), "topics"))
    rows, ids = _topic_rows(size, drawn, corpus)
    for number, part in enumerate(shards(rows, _N_SHARDS)):
        # as in the data set: "test-00009-…", then "test-000010-…", one digit longer
        name = f"test-0000{number}-of-0000{_N_SHARDS}.parquet"
        write_file(folder / "data" / name, parquet_bytes(_COLUMNS, part))
    write_file(folder / LABELS_FILE, _labels_file(drawn))
    write_passages(size, planned, ids, folder / TEXTS)


@dataclass(frozen=True, slots=True)
class _DrawnTopic:
    """A topic whose images are in the corpus."""

    rows: Mapping[str, Json]  # name of a question → its row but for id and retrieved images
    query_files: Mapping[str, str]  # name of a question → the file of its query in the corpus
    examples: tuple[str, ...]  # files in the corpus, of a question or not
    histograms: Mapping[str, np.ndarray]  # file in the corpus → colour histogram


def _draw_topic(edition: MragBenchEdition, corpus: Path, planned: PlannedTopic) -> _DrawnTopic:
    """Draw all images of a topic into the corpus."""
    topic, size = planned.topic, edition.size
    histograms: dict[str, np.ndarray] = {}

    def write(image: Image.Image, role: str, which: int) -> str:
        file = _image_name(planned.scenario, topic, planned.index, role, which)
        data = _encode_image(image, file)
        with (corpus / file).open("xb") as opened:  # no name comes twice
            opened.write(data)
        histograms[file] = _histogram(data)
        return file

    pool = tuple(
        write(topic.example_image(f"{topic.key}/gt/{i}", size), "gt", i)
        for i in range(planned.pool)
    )
    for i, stray in enumerate(plan_distractors(edition, planned)):
        write(stray.example_image(f"{stray.key}/fp", size), "fp", i)
    rows, query_files = {}, {}
    for i, question in enumerate(planned.questions):
        shown = in_corpus = topic.query_image(question.name, size)
        if planned.scenario == "partial" and isinstance(topic, SpeciesTopic):
            in_corpus = whole(topic.species, topic.part, question.name, size)
        file = query_files[question.name] = write(in_corpus, "input", i)
        examples = [(corpus / pool[example]).read_bytes() for example in question.examples]
        image = _encode_image(shown, file)
        rows[question.name] = _row(planned, question, image, examples)
    return _DrawnTopic(rows, query_files, pool, histograms)


def _image_name(scenario: str, topic: Topic, index: int, role: str, which: int) -> str:
    """The name of a topic's image like those of the real corpus: some tell the answer, some hold
    spaces, a plus as %2B or letters beyond ASCII. `which` counts within the role.
    """
    place = list(SCENARIOS).index(scenario) * 100 + index  # there are fewer topics than that
    serial = (place * len(_ROLES) + _ROLES.index(role)) * 32 + which
    number = serial * 7919 % 99_991  # a prime: numbers stay apart, and tell nothing
    end = f"{index}_{role}" if role == "input" and not which else f"{index}_{role}_{which}"
    if isinstance(topic, RegionTopic):
        side = _SIDES[number % len(_SIDES)]
        return f"regions_images_{topic.region.name}_{side}_{topic.kind}_{number:05d}.jpg"
    ending = "webp" if role == "input" else "jpg"
    names = {
        "incomplete": f"Mechanical_Tray_{end}.png",
        "deformation": f"Mechanical_{topic.what}_{end}.{ending}",
        "temporal": f"Temporal_{topic.what}_{end}.jpg",
        "biological": f"Biological_{end}.jpg",
    }
    if scenario in names:
        return names[scenario]
    if topic.what == "Flower":  # the others are named as in Flowers102, StanfordCars and ImageNet
        return f"flowers_jpg_image_{number:05d}.jpg"
    if topic.what == "Fish":
        part, sign = "train" if number % 3 else "test", "R%2B" if index % 2 else "R+"
        name = f"{topic.species.common_name} {sign} 2012_{number:05d}"
        return f"wrasses_by_class_wrasse_{part}_{name}.jpg"
    return f"guidebook_val_GUIDE2026_val_{number:08d}.JPEG"


def _encode_image(image: Image.Image, name: str) -> bytes:
    """An image as the bytes of a file of that name; PNG files have a palette, of which one color
    is marked as transparent.
    """
    file = io.BytesIO()
    if name.endswith(".png"):
        few = image.quantize(64, dither=Image.Dither.NONE)
        few.save(file, "PNG", transparency=0)
    elif name.endswith(".webp"):
        image.save(file, "WEBP", quality=86, method=2)
    else:
        image.save(file, "JPEG", quality=86)
    return file.getvalue()


def _reencode_image(data: bytes) -> bytes:
    """The same pixels as other bytes: a PNG file without palette."""
    file = io.BytesIO()
    with Image.open(io.BytesIO(data)) as image:
        image.convert("RGB").save(file, "PNG")
    return file.getvalue()


def _row(
    planned: PlannedTopic, question: PlannedQuestion, image: bytes, examples: list[bytes]
) -> Json:
    """Column → value, without the id and what is retrieved."""
    scenario = SCENARIOS[planned.scenario]
    if scenario.name == "incomplete" and question.number % 2:
        image = _reencode_image(image)
        examples = [_reencode_image(data) for data in examples]
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


def _histogram(data: bytes) -> np.ndarray:
    """Root of the color histogram, 6 × 6 × 6 bins, of the middle of an image; of unit length."""
    with Image.open(io.BytesIO(data)) as file:
        small = np.asarray(file.convert("RGB").resize((48, 48), Image.Resampling.BOX))
    bins = small[6:42, 6:42].reshape(-1, 3).astype(np.int64) * 6 // 256
    counts = np.bincount(bins @ np.array([36, 6, 1]), minlength=216)
    root = np.sqrt(counts.astype(np.float64))
    unit: np.ndarray = root / np.linalg.norm(root)
    return unit


def _topic_rows(
    edition: MragBenchEdition, topics: Sequence[_DrawnTopic], corpus: Path
) -> tuple[list[Json], dict[str, str]]:
    """The rows in a shuffled order, numbered from 0, and each question's name → its id.

    `retrieved_images` are the nearest by cosine of colour histograms, without the query's own.
    """
    histograms: dict[str, np.ndarray] = {}
    planned: list[tuple[str, _DrawnTopic]] = []
    for topic in topics:
        histograms |= topic.histograms
        planned += [(name, topic) for name in topic.rows]
    files = sorted(histograms)
    table = np.stack([histograms[name] for name in files])
    rows, ids = [], {}
    for number, place in enumerate(stream(edition.seed, "rows").permutation(len(planned))):
        name, topic = planned[place]
        row = topic.rows[name]
        scores = table @ _histogram(row["image"]["bytes"])
        scores[files.index(topic.query_files[name])] = -1.0
        nearest = np.argsort(-scores, kind="stable")[:_N_RETRIEVED]
        retrieved = [image_cell((corpus / files[i]).read_bytes()) for i in nearest]
        rows.append({"id": str(number), **row, "retrieved_images": retrieved})
        ids[name] = str(number)
    return rows, ids


def _labels_file(topics: Sequence[_DrawnTopic]) -> str:
    """A CSV with a class for each topic whose images' names do not tell it."""
    lines = ["file,label"]
    for number, topic in enumerate(topics):
        unnamed = [name for name in topic.examples if not class_of(name, {})]
        lines += [f"{name},class-{number:04d}" for name in unnamed]
    return "\n".join(lines) + "\n"
