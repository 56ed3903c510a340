"""The four papers' data as a dry run sees them: a few questions in each data set's own layout,
with as many words, images and pixels as published, and nothing to see or read.

Sizes of images and lengths of questions and answers are the means of MRAG-Suite's Table 1, whose
lengths are taken as words; what stands nowhere is a constant here, and says so.
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
from chart_rows import chart_row, write_charts
from crag_rows import MULTI, SINGLE, session, turn, write_rows
from mrag_rows import mrag_row, write_mrag_rows
from page_rows import label, write_pages
from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, PAGES
from vrag_kit.files import write_file
from vrag_kit.papers import published

POOL, CLUES = 265, 16
"""Visual-RAG: images of a question's species, 99,017 in all, and those that are clues."""
EGO = (960, 1280)
"""CRAG-MM: the size to which the paper's code squeezes images; here all have it."""
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


def cell(image: bytes) -> dict[str, Any]:
    """An image in a row of a published table."""
    return {"bytes": image, "path": None}


def size_of(dataset: str) -> tuple[int, int]:
    """The mean width and height of its images."""
    means = printed(dataset)
    return round(means["avg_image_width_px"]), round(means["avg_image_height_px"])


def asked(dataset: str, number: int) -> tuple[str, str]:
    """A question and its answer, of the mean lengths."""
    means = printed(dataset)
    question = words(means["avg_question_length"], f"Question{number}")
    return question, words(means["avg_answer_length"], f"answer{number}")


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
        question, answer = asked("Visual-RAG", number)
        names = {f"{species.name}/{each}.png": int(each < CLUES) for each in range(POOL)}
        row = {"question": question, "answer": [answer], "sn": f"Bombus species{number}"}
        rows.append(json.dumps({**row, "images": names}))
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
        first, *shown = [shade(size, 20 * number + place) for place in range(11)]
        options = {letter: words(2, f"{letter}{number}") for letter in "ABCD"}
        about = {"scenario": scenario, "question": asked("MRAG-Bench", number)[0], **options}
        about |= {"answer_choice": "A", "answer": options["A"], "image": first}
        about |= {"gt_images": shown[:examples], "retrieved_images": shown[5:]}
        rows.append(mrag_row(number, **about))
    return str(write_mrag_rows(folder, [rows]))


def crag_mm(folder: Path, turns: list[int]) -> str:
    """A folder of conversations of so many turns each; all of one turn are single-turn."""
    rows = []
    for number, count in enumerate(turns):
        names = [f"s{number}" if count == 1 else f"s{number}-{each}" for each in range(count)]
        asked = [turn(name, words(CRAG_QUESTION, name)) for name in names]
        answers = [{"interaction_id": name, "ans_full": words(10)} for name in names]
        picture = cell(shade(EGO, number))
        rows.append(session(f"s{number}", *asked, image=picture, answers=answers))
    numbering = MULTI if max(turns) > 1 else SINGLE
    return str(write_rows(folder, rows, names=numbering, split="public_test"))


def crag_indexes(folder: Path) -> str:
    """A folder of indexes whose documents fill a prompt."""
    entries, pages = [], []
    attributes = {"about": "words " * (IMAGE_CHARS // IMAGE_K // 6)}
    for number in range(IMAGE_K):
        entity = {"entity_name": f"Thing {number}", "entity_attributes": attributes}
        url = f"https://x.org/{number}.jpg"
        entries.append({"index": number, "image": None, "image_url": url, "entities": [entity]})
    snippet = "words " * (WEB_CHARS // WEB_K // 6)
    for number in range(WEB_K):
        page = {"page_url": f"https://x.org/{number}", "page_name": f"Page {number}"}
        pages.append({**page, "page_snippet": snippet})
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
    pages, queries, labels = [], [], []
    for number in range(questions):
        page, query_id = f"page_{number}.jpg", f"q{number}"
        pages.append({"corpus-id": page, "image": cell(shade(size_of(name), number))})
        labels.append(label(query_id, page))
        question, answer = asked(name, number)
        query: dict[str, Any] = {"query-id": query_id, "query": question, "answer": answer}
        if name == "VisRAG-ArXiv":
            options = [f"{letter}) {letter}{answer}" for letter in "ABCD"]
            query |= {"options": options, "answer": "A"}
        queries.append(query)
    return {"rows": str(write_pages(folder, pages, queries, labels))}


def _charts(name: str, folder: Path, questions: int) -> dict[str, str]:
    """Charts and sentences; every question needs one of both."""
    rows, sentences = [], {}
    for number in range(questions):
        sentence = f"paragraph_{number:05}_01_01"
        sentences[sentence] = words(SNIPPET, number)
        needed = {f"chart_{number:05}_01": "A word.", sentence: "A word."}
        question, answer = asked(name, number)
        about = {"query": question, "gt_answer": answer}
        row_id = f"Intra-Document_Text-Chart_{number:05}"
        rows.append(chart_row(row_id, needed, shade(size_of(name), number), **about))
    places = write_charts(folder, rows, sentences)
    return dict(zip(("rows", "texts"), map(str, places), strict=True))


def _webqa(name: str, folder: Path, questions: int) -> dict[str, str]:
    """Captioned images and snippets, three of each a question: one answers."""
    size, rows, lines = size_of(name), {}, []
    for number in range(questions):
        question, answer = asked(name, number)
        images, snippets = [], []
        for line in range(3 * number, 3 * number + 3):
            image_id = 30_000_000 + line
            images.append({"image_id": image_id, "caption": words(CAPTION, line), "title": "t"})
            snippets.append({"snippet_id": f"s{line}", "fact": words(SNIPPET, line), "title": "t"})
            data = base64.b64encode(shade(size, line)).decode()
            lines.append(f"{image_id}\t{data}\n".encode())
        rows[f"guid{number}"] = {
            **{"Q": question, "A": [answer], "topic": f"t{number}", "split": "val"},
            **{"img_posFacts": images[:1], "img_negFacts": images[1:]},
            **{"txt_posFacts": snippets[:1], "txt_negFacts": snippets[1:]},
        }
    starts = np.cumsum([0, *map(len, lines[:-1])])
    write_file(folder / "imgs.tsv", b"".join(lines))
    write_file(folder / "imgs.lineidx", "\n".join(map(str, starts)))
    write_file(folder / "WebQA_train_val.json", json.dumps(rows))
    return {
        "annotations": str(folder / "WebQA_train_val.json"),
        "images": str(folder / "imgs.tsv"),
    }
