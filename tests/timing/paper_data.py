"""The four papers' data as a forecast sees them: a few questions in each data set's own
layout, with as many words, pictures and pixels as published, and nothing to see or read.

Sizes of pictures and lengths of questions and answers are the means of MRAG-Suite's Table
1, whose lengths are taken as words; what stands nowhere is a constant here, and says so.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, PAGES
from vrag_kit.files import write_file
from vrag_kit.papers import published
from vrag_kit.synthetic.crag_mm.drawing import LABELS, MULTI_TURN, SINGLE_TURN
from vrag_kit.synthetic.rows import (
    IMAGE,
    IMAGES,
    NUMBER,
    TEXT,
    TEXTS,
    arrow_table,
    class_labels,
    image_cell,
    parquet_bytes,
)

POOL, CLUES = 265, 16
"""Visual-RAG: images of a question's species, 99,017 in all, and those that are clues."""
EGO = (960, 1280)
"""CRAG-MM: the size to which the paper's code squeezes pictures; here all have it."""
CRAG_QUESTION = 12
"""CRAG-MM: words of a question; the paper does not say."""
SNIPPET, CAPTION = 40, 12
"""Words of a snippet or sentence, and of a caption; the papers do not say."""
IMAGE_K, WEB_K = 30, 50
IMAGE_CHARS, WEB_CHARS = 8_000, 32_000
"""CRAG-MM: what the searches find, and as many characters of it as a prompt may hold."""


def printed(dataset: str) -> dict[str, float]:
    """MRAG-Suite's Table 1 on a data set: metric → value."""
    table = published("mrag_suite", 1).query("dataset == @dataset")
    return dict(zip(table["metric"], table["value"].astype(float), strict=True))


def words(count: float, name: object = "") -> str:
    """So many words, of which the name is one."""
    return " ".join([str(name) or "words", *["words"] * (round(count) - 1)])


@cache
def shade(size: tuple[int, int], number: int = 0) -> bytes:
    """A PNG of this size in one colour, each number another."""
    file = io.BytesIO()
    Image.new("RGB", size, (number % 251, number // 251, 90)).save(file, "PNG", compress_level=1)
    return file.getvalue()


def size_of(dataset: str) -> tuple[int, int]:
    """The mean width and height of its pictures."""
    told = printed(dataset)
    return round(told["avg_image_width_px"]), round(told["avg_image_height_px"])


def asked(dataset: str, number: int) -> dict[str, str]:
    """A question and its answer, of the mean lengths."""
    told = printed(dataset)
    return {
        "question": words(told["avg_question_length"], f"Question{number}"),
        "answer": words(told["avg_answer_length"], f"answer{number}"),
    }


def visual_rag(folder: Path, questions: int) -> dict[str, str]:
    """annotations and image_root of so many questions, each on a species of its own."""
    rows = []
    pool = folder / "pool"
    pool.mkdir(parents=True)
    for each in range(POOL):
        (pool / f"{each}.png").write_bytes(shade(size_of("Visual-RAG"), each))
    for number in range(questions):
        species = folder / "images" / f"{number:05}_Bombus_species{number}"
        species.mkdir(parents=True)
        for each in range(POOL):
            os.link(pool / f"{each}.png", species / f"{each}.png")
        told = asked("Visual-RAG", number)
        names = {f"{species.name}/{each}.png": int(each < CLUES) for each in range(POOL)}
        row = {**told, "answer": [told["answer"]], "sn": f"Bombus species{number}", "images": names}
        rows.append(json.dumps(row))
    write_file(folder / "visual_rag.jsonl", "\n".join(rows))
    return {
        "annotations": str(folder / "visual_rag.jsonl"),
        "image_root": str(folder / "images"),
    }


def mrag_bench(folder: Path, questions: int, scenario: str = "Angle") -> str:
    """A folder of rows of one scenario: with one example in "Incomplete", five elsewhere."""
    size, examples = size_of("MRAG-Bench"), 1 if scenario == "Incomplete" else 5
    rows = []
    for number in range(questions):
        shown = [image_cell(shade(size, 20 * number + place)) for place in range(11)]
        options = {letter: words(2, f"{letter}{number}") for letter in "ABCD"}
        row = {
            "id": str(number),
            "aspect": "Perspective",
            "scenario": scenario,
            "image": shown[0],
            "gt_images": shown[1 : 1 + examples],
            "question": asked("MRAG-Bench", number)["question"],
            **options,
            "answer_choice": "A",
            "answer": options["A"],
            "image_type": "Animal",
            "source": "drawn",
            "retrieved_images": shown[6:],
        }
        rows.append(row)
    columns = dict.fromkeys(rows[0], TEXT)
    columns |= {"image": IMAGE, "gt_images": IMAGES, "retrieved_images": IMAGES}
    write_file(folder / "test-00000-of-00001.parquet", parquet_bytes(columns, rows))
    return str(folder)


def crag_mm(folder: Path, turns: list[int]) -> str:
    """A folder of conversations of so many turns each; all of one turn are single-turn."""
    numbering = LABELS[MULTI_TURN if max(turns) > 1 else SINGLE_TURN]
    rows = []
    for number, count in enumerate(turns):
        names = [f"s{number}" if count == 1 else f"s{number}-{turn}" for turn in range(count)]
        row = {
            "session_id": f"s{number}",
            "image": image_cell(shade(EGO, number)),
            "image_url": None,
            "turns": {
                "interaction_id": names,
                "query": [words(CRAG_QUESTION, name) for name in names],
                **{column: [0] * count for column in numbering},
            },
            "answers": {"interaction_id": names, "ans_full": [words(10)] * count},
        }
        rows.append(row)
    labels = {column: class_labels(names) for column, names in numbering.items()}
    columns = {
        "session_id": TEXT,
        "image": IMAGE,
        "image_url": TEXT,
        "turns": {"interaction_id": TEXTS, "query": TEXTS, **labels},
        "answers": {"interaction_id": TEXTS, "ans_full": TEXTS},
    }
    file = folder / "data" / "public_test-00000-of-00001.parquet"
    write_file(file, parquet_bytes(columns, rows))
    return str(folder)


def crag_indexes(folder: Path) -> str:
    """A folder of indexes whose documents fill a prompt."""
    attributes = {"about": "words " * (IMAGE_CHARS // IMAGE_K // 6)}
    entries = [
        {
            "index": number,
            "image": None,
            "image_url": f"https://x.org/{number}.jpg",
            "entities": [{"entity_name": f"Thing {number}", "entity_attributes": attributes}],
        }
        for number in range(IMAGE_K)
    ]
    snippet = "words " * (WEB_CHARS // WEB_K // 6)
    pages = [
        {
            "page_url": f"https://x.org/{number}",
            "page_name": f"Page {number}",
            "page_snippet": snippet,
        }
        for number in range(WEB_K)
    ]
    for index, file, rows in (("image", ENTRIES, entries), ("web", PAGES, pages)):
        lines = (f"{json.dumps(row)}\n" for row in rows)
        write_file(folder / f"{index}-index-public-test" / file, lines)
    return str(folder)


def suite_entry(
    name: str, entry: Mapping[str, str], folder: Path, questions: int
) -> dict[str, str]:
    """A data set of MRAG-Suite, in the layout of its entry: the entry with our paths."""
    kept = {key: entry[key] for key in ("layout", "domain", "answers") if key in entry}
    write = {
        "pages": _pages,
        "charts": _charts,
        "webqa": _webqa,
        "visual-rag": lambda _name, folder, questions: visual_rag(folder, questions),
        "mrag-bench": lambda _name, folder, questions: {"rows": mrag_bench(folder, questions)},
    }
    return {**kept, **write[entry["layout"]](name, folder, questions)}


def _pages(name: str, folder: Path, questions: int) -> dict[str, str]:
    """Pages, one a question; of ArXivQA with options, whose letter is the answer."""
    size = size_of(name)
    options = name == "VisRAG-ArXiv"
    pages = [
        {"corpus-id": f"page_{number}.jpg", "image": image_cell(shade(size, number))}
        for number in range(questions)
    ]
    queries: list[dict[str, Any]] = []
    for number in range(questions):
        told = asked(name, number)
        row = {"query-id": f"q{number}", "query": told["question"], "answer": told["answer"]}
        if options:
            four = [f"{letter}) {letter}{told['answer']}" for letter in "ABCD"]
            row |= {"options": four, "answer": "A"}
        queries.append(row)
    labels = [
        {"query-id": f"q{number}", "corpus-id": f"page_{number}.jpg", "score": 1}
        for number in range(questions)
    ]
    choices = {"options": TEXTS} if options else {}
    configs = {
        "corpus": ({"corpus-id": TEXT, "image": IMAGE}, pages),
        "queries": (dict.fromkeys(queries[0], TEXT) | choices, queries),
        "qrels": ({"query-id": TEXT, "corpus-id": TEXT, "score": NUMBER}, labels),
    }
    for config, (columns, rows) in configs.items():
        write_file(folder / config / "train-00000-of-00001.parquet", parquet_bytes(columns, rows))
    return {"rows": str(folder)}


def _charts(name: str, folder: Path, questions: int) -> dict[str, str]:
    """Charts and sentences; every question needs one of both."""
    size = size_of(name)
    rows = []
    for number in range(questions):
        told = asked(name, number)
        claims = {f"chart_{number:05}_01": "A word.", f"paragraph_{number:05}_01_01": "A word."}
        row = {
            "id": f"Intra-Document_Text-Chart_{number:05}",
            "query": told["question"],
            "gt_answer": told["answer"],
            "gt_chart": [image_cell(shade(size, number))],
            "gt_keypoints": json.dumps(claims),
        }
        rows.append(row)
    columns = dict.fromkeys(rows[0], TEXT) | {"gt_chart": IMAGES}
    table, file = arrow_table(columns, rows), io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    write_file(folder / "rows" / "data-00000-of-00001.arrow", file.getvalue())
    sentences = [
        json.dumps({"id": f"paragraph_{number:05}_01_01", "text": words(SNIPPET, number)})
        for number in range(questions)
    ]
    write_file(folder / "texts.jsonl", "\n".join(sentences))
    return {"rows": str(folder / "rows"), "texts": str(folder / "texts.jsonl")}


def _webqa(name: str, folder: Path, questions: int) -> dict[str, str]:
    """Captioned pictures and snippets, three of each a question: one answers."""
    size, rows, lines = size_of(name), {}, []
    for number in range(questions):
        told = asked(name, number)
        images, snippets = [], []
        for place in range(3):
            line = 3 * number + place
            image_id = 30_000_000 + line
            images.append({"image_id": image_id, "caption": words(CAPTION, line), "title": "t"})
            snippets.append({"snippet_id": f"s{line}", "fact": words(SNIPPET, line), "title": "t"})
            data = base64.b64encode(shade(size, line)).decode()
            lines.append(f"{image_id}\t{data}\n".encode())
        rows[f"guid{number}"] = {
            "Q": told["question"],
            "A": [told["answer"]],
            "topic": f"t{number}",
            "split": "val",
            "img_posFacts": images[:1],
            "img_negFacts": images[1:],
            "txt_posFacts": snippets[:1],
            "txt_negFacts": snippets[1:],
        }
    starts = np.cumsum([0, *map(len, lines[:-1])])
    write_file(folder / "imgs.tsv", b"".join(lines))
    write_file(folder / "imgs.lineidx", "\n".join(map(str, starts)))
    write_file(folder / "WebQA_train_val.json", json.dumps(rows))
    return {
        "annotations": str(folder / "WebQA_train_val.json"),
        "images": str(folder / "imgs.tsv"),
    }
