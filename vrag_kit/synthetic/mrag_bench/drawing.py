"""MRAG-Bench drawn with the guide's organisms, in the layout of the real data set; and opened as a
notebook's parameters name it: a synthetic edition, or the real data.

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
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from vrag_kit.benchmarks.datasets.mrag_bench import CORPUS, STORE, load_mrag_bench
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import (
    class_of,
    load_mrag_texts,
    read_class_labels,
)
from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.files import project_path, write_file
from vrag_kit.log import progress
from vrag_kit.synthetic.editions import DRAWN_MRAG, edition_or_rows, generate_once, worker_pool
from vrag_kit.synthetic.mrag_bench.passages import TEXTS, write_passages
from vrag_kit.synthetic.mrag_bench.scenario_images import whole
from vrag_kit.synthetic.mrag_bench.topics import (
    EDITIONS,
    SCENARIOS,
    MragBenchEdition,
    PlannedQuestion,
    PlannedTopic,
    Topic,
    plan_edition,
)
from vrag_kit.synthetic.rows import IMAGE, IMAGES, TEXT, image_cell, parquet_bytes, shards
from vrag_kit.synthetic.world.photographs import encode_image
from vrag_kit.synthetic.world.traits import shuffled, stream
from vrag_kit.types import Benchmark, Json

LABELS_FILE = "labels.csv"
_N_SHARDS = 11  # the fewest that show how their names sort
_N_RETRIEVED = 5
_ROLES = ("input", "gt", "fp")
_SIDES = ("North", "Søndre", "Côte d'Azur", "Lower")
_IMAGE_COLUMNS = {"image": IMAGE, "gt_images": IMAGES, "retrieved_images": IMAGES}


def generate_mrag_bench(edition: str, folder: Path | str) -> Path:
    """Generate an edition ("full": 540 questions, "small": 63) in `folder` unless it exists;
    returns the folder. Raises as `generate_once` does.
    """
    outputs = (CORPUS, "data")
    return generate_once("field-guide-mrag-bench", edition, EDITIONS, folder, _draw, outputs)


def _draw(edition: str, folder: Path) -> None:
    corpus, size = folder / CORPUS, EDITIONS[edition]
    for begun in (corpus, folder / "data"):  # an interrupted drawing begins again
        shutil.rmtree(begun, ignore_errors=True)
    corpus.mkdir()
    planned = plan_edition(size)
    with worker_pool() as pool:
        made = pool.map(partial(_draw_topic, size, corpus), planned, chunksize=4)
        drawn = list(progress(made, f"drawing MRAG-Bench ({size.seed})", len(planned), "topics"))
    rows, ids = _topic_rows(size, drawn, corpus)
    columns = {name: _IMAGE_COLUMNS.get(name, TEXT) for name in rows[0]}
    for number, part in enumerate(shards(rows, _N_SHARDS)):
        # as in the data set: "test-00009-…", then "test-000010-…", one digit longer
        name = f"test-0000{number}-of-0000{_N_SHARDS}.parquet"
        write_file(folder / "data" / name, parquet_bytes(columns, part))
    write_file(folder / LABELS_FILE, _labels_file(drawn))
    write_passages(planned, ids, folder / TEXTS)


class _DrawnTopic(NamedTuple):
    """A topic whose images are in the corpus."""

    rows: dict[str, tuple[str, Json]]
    """Name of a question → the file of its query in the corpus, its row but for id and retrieved
    images.
    """
    examples: list[str]  # files in the corpus, of a question or not
    histograms: dict[str, np.ndarray]  # file in the corpus → colour histogram


def _draw_topic(edition: MragBenchEdition, corpus: Path, planned: PlannedTopic) -> _DrawnTopic:
    """Draw all images of a topic into the corpus."""
    topic, size = planned.topic, edition.size
    histograms: dict[str, np.ndarray] = {}

    def write(image: Image.Image, role: str, which: int) -> str:
        file = _image_name(topic, planned.index, role, which)
        data = _encode_image(image, file)
        with (corpus / file).open("xb") as opened:  # no name comes twice
            opened.write(data)
        histograms[file] = _histogram(data)
        return file

    shots = range(planned.pool)
    pool = [write(topic.example_image(f"{topic.key}/gt/{i}", size), "gt", i) for i in shots]
    for i, stray in enumerate(planned.strays):
        write(stray.example_image(f"{stray.key}/fp", size), "fp", i)
    rows = {}
    for i, question in enumerate(planned.questions):
        query = in_corpus = topic.query_image(question.name, size)
        if topic.scenario.name == "partial":
            in_corpus = whole(topic.species, topic.part, question.name, size)
        file = write(in_corpus, "input", i)
        examples = [(corpus / pool[example]).read_bytes() for example in question.examples]
        rows[question.name] = file, _row(planned, question, _encode_image(query, file), examples)
    return _DrawnTopic(rows, pool, histograms)


def _image_name(topic: Topic, index: int, role: str, which: int) -> str:
    """The name of a topic's image like those of the real corpus: some tell the answer, some hold
    spaces, a plus as %2B or letters beyond ASCII. `which` counts within the role.
    """
    scenario = topic.scenario.name
    place = list(SCENARIOS).index(scenario) * 100 + index  # there are fewer topics than that
    serial = (place * len(_ROLES) + _ROLES.index(role)) * 32 + which
    number = serial * 7919 % 99_991  # a prime: numbers stay apart, and tell nothing
    if topic.region:
        side, kind = _SIDES[number % len(_SIDES)], topic.species.kind
        return f"regions_images_{topic.region.name}_{side}_{kind}_{number:05d}.jpg"
    end = f"{index}_{role}" if role == "input" and not which else f"{index}_{role}_{which}"
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
    if name.endswith(".png"):
        return encode_image(image.quantize(64, dither=Image.Dither.NONE), "PNG", transparency=0)
    if name.endswith(".webp"):
        return encode_image(image, "WEBP", quality=86, method=2)
    return encode_image(image, "JPEG", quality=86)


def _reencode_image(data: bytes) -> bytes:
    """The same pixels as other bytes: a PNG file without palette."""
    return encode_image(decode(data, "a drawn image"), "PNG")


def _row(
    planned: PlannedTopic, question: PlannedQuestion, image: bytes, examples: list[bytes]
) -> Json:
    """Column → value, without the id and what is retrieved."""
    scenario = planned.topic.scenario
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
        "question": question.about.text,
        **options,
        "answer_choice": question.letter,
        "answer": options[question.letter],
        "image_type": planned.topic.what,
        "source": "known species" if question.about.asks == "name" else "new",
    }


def _histogram(data: bytes) -> np.ndarray:
    """Root of the color histogram, 6 × 6 × 6 bins, of the middle of an image; of unit length."""
    small = np.asarray(decode(data, "a drawn image").resize((48, 48), Image.Resampling.BOX))
    bins = small[6:42, 6:42].reshape(-1, 3).astype(np.int64) * 6 // 256
    counts = np.bincount(bins @ np.array([36, 6, 1]), minlength=216)
    root = np.sqrt(counts.astype(np.float64))
    return np.asarray(root / np.linalg.norm(root))


def _topic_rows(
    edition: MragBenchEdition, topics: Sequence[_DrawnTopic], corpus: Path
) -> tuple[list[Json], dict[str, str]]:
    """The rows in a shuffled order, numbered from 0, and each question's name → its id.

    `retrieved_images` are the nearest by cosine of colour histograms, without the query's own.
    """
    histograms: dict[str, np.ndarray] = {}
    questions: dict[str, tuple[str, Json]] = {}
    for topic in topics:
        histograms |= topic.histograms
        questions |= topic.rows
    files = sorted(histograms)
    table = np.stack([histograms[name] for name in files])
    order = shuffled([*questions], stream(edition.seed, "rows"))
    ids = {name: str(number) for number, name in enumerate(order)}
    rows = []
    for name, row_id in ids.items():
        query_file, row = questions[name]
        scores = table @ _histogram(row["image"]["bytes"])
        scores[files.index(query_file)] = -1.0
        nearest = np.argsort(-scores, kind="stable")[:_N_RETRIEVED]
        retrieved = [image_cell((corpus / files[i]).read_bytes()) for i in nearest]
        rows.append({"id": row_id, **row, "retrieved_images": retrieved})
    return rows, ids


def _labels_file(topics: Sequence[_DrawnTopic]) -> str:
    """A CSV with a class for each topic whose images' names do not tell it."""
    text = "file,label\n"
    for number, topic in enumerate(topics):
        for name in topic.examples:
            if not class_of(name, {}):
                text += f"{name},class-{number:04d}\n"
    return text


def open_mrag_bench(
    mrag_rows: str, mrag_corpus: str = "", *, cache_dir: Path | str = STORE
) -> Benchmark:
    """A synthetic edition by its name in `DRAWN_MRAG`, generated if its folder is missing; or
    the rows in a folder of parquet shards or of a data set of the hub, with the folder of
    the corpus ("": the images of the rows).

    Raises `VragError` as drawing and loading do, for a name that is neither, and for a
    corpus beside a drawn edition.
    """
    rows, is_edition = edition_or_rows(
        "mrag_rows", mrag_rows, DRAWN_MRAG, generate_mrag_bench, mrag_corpus
    )
    if is_edition:
        return load_mrag_bench(rows, rows, cache_dir=cache_dir, name=mrag_rows)
    corpus = project_path(mrag_corpus) if mrag_corpus else None
    return load_mrag_bench(rows, corpus, cache_dir=cache_dir)


def open_mrag_passages(benchmark: Benchmark, mrag_texts: str) -> Benchmark:
    """The benchmark's questions over passages of text: those of a drawn edition, or those
    in a folder of `passages.csv` and `ground_truth.csv`.

    Raises `VragError` as `load_mrag_texts` and `edition_or_rows` do, and for the
    passages of a drawn edition beside other questions.
    """
    if not mrag_texts:
        raise VragError(
            'mrag_texts is "", but MRAG-Bench comes without texts. Write passages.csv'
            " (passage,text) and ground_truth.csv (question,passage) into a folder, and name it."
        )
    if mrag_texts in DRAWN_MRAG and benchmark.name != mrag_texts:
        raise VragError(
            f"mrag_texts is {mrag_texts!r}, but the questions are {benchmark.name!r}, of which"
            " these passages tell nothing. Name a folder with passages about them."
        )
    given, is_edition = edition_or_rows("mrag_texts", mrag_texts, DRAWN_MRAG, generate_mrag_bench)
    folder = Path(given)
    return load_mrag_texts(benchmark, folder / TEXTS if is_edition else folder)


def open_class_labels(mrag_rows: str, mrag_labels: str = "") -> dict[str, str]:
    """File of the corpus → its class, where its name does not tell it: what comes with a
    drawn edition, or the CSV file `mrag_labels` (`read_class_labels`); none for "".
    """
    if mrag_rows in DRAWN_MRAG and not mrag_labels:
        return read_class_labels(project_path(f"data/{mrag_rows}") / LABELS_FILE)
    return read_class_labels(project_path(mrag_labels)) if mrag_labels else {}
