"""A few questions in MRAG-Bench's form, written by hand: rare ones among them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import factories
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from vrag_kit.papers.mrag_bench.results import judge_choices
from vrag_kit.types import Benchmark, Document, Query


@dataclass(frozen=True)
class Picture:
    """A picture that is never opened."""

    where: str
    stamp: str = ""

    def data(self) -> bytes:
        raise AssertionError(self.where)

    def open(self) -> Image.Image:
        raise AssertionError(self.where)


ASKED = {
    "0": ("angle", "Which animal is this?", "wood_rabbit|Eastern cottontail|Marsh rabbit|hare", 5),
    "1": ("incomplete", "Which key is missing?", "M|N|H|B", 1),
    "2": ("others", "Where was {this} taken?", "EastAsia|SouthEastAsia|Africa|Europe", 5),
    "3": ("partial", "Which lily?", "tiger lily|Turkscap|Toad|Martagon", 5),
}


def four_questions() -> Benchmark:
    """Four questions, the first option right; 5 ground-truth pictures, 1 in Incomplete, 5
    retrieved ones of which the first is ground truth, 6 others.
    """
    queries, qrels, names = {}, {}, []
    for query_id, (scenario, text, options, count) in ASKED.items():
        choices = tuple(options.split("|"))
        shown = [f"gt{query_id}-{place}" for place in range(count)]
        retrieved = [shown[0], *(f"no{query_id}-{place}" for place in range(4))]
        queries[query_id] = Query(
            query_id=query_id,
            text=text,
            image=Picture(f"asked/{query_id}.jpg"),
            answers=(choices[0],),
            choices=choices,
            group=query_id,
            metadata={"scenario": scenario, "letter": "A", "retrieved": retrieved},
        )
        qrels[query_id] = dict.fromkeys(shown, 1)
        names += [*shown, *retrieved[1:], f"no{query_id}-4", f"no{query_id}-5"]
    corpus = {name: Document(doc_id=name, image=Picture(f"corpus/{name}.jpg")) for name in names}
    return Benchmark(name="four", fingerprint="f", queries=queries, corpus=corpus, qrels=qrels)


Row = dict[str, Any]
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def mrag_picture(*shades: int, kind: str = "PNG") -> bytes:
    """A small picture of these shades."""
    pixels = np.zeros((8, 12, 3), np.uint8)
    pixels[:] = np.resize(shades, 3)
    pixels[0, 0] = np.resize(shades[::-1], 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def mrag_row(number: int, *gt: int, **other: Any) -> Row:
    """A row that asks about picture `number`; `gt` are the numbers of its examples."""
    told = {
        "id": str(number),
        "aspect": "Perspective",
        "scenario": "Angle",
        "image": mrag_picture(number, 7),
        "gt_images": [mrag_picture(each, 99) for each in gt or range(number * 10, number * 10 + 5)],
        "question": "What is it?",
        "A": "wood_rabbit",
        "B": "hare",
        "C": "pika",
        "D": "vole",
        "answer_choice": "B",
        "answer": "hare",
        "image_type": "Animal",
        "source": "drawn",
        "retrieved_images": [mrag_picture(each, 55) for each in range(5)],
    }
    return {**told, **other}


def write_mrag_rows(folder: Path, shards: list[list[Row]], told: int | None = None) -> Path:
    """Shards with the names of the real ones."""
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(shards):
        columns = {name: [_encoded(each[name]) for each in rows] for name in rows[0]}
        lists = ("gt_images", "retrieved_images")
        types = {"image": PICTURE, **dict.fromkeys(lists, pa.list_(PICTURE))}
        texts = {name: pa.array(values).type for name, values in columns.items()}
        schema = pa.schema([(name, types.get(name, texts[name])) for name in columns])
        path = folder / f"test-0000{number}-of-0000{told or len(shards)}.parquet"
        pq.write_table(pa.table(columns, schema=schema), path)
    return folder


def _encoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    return {"bytes": value, "path": None} if isinstance(value, bytes) else value


def corpus_of(folder: Path, rows: list[Row]) -> Path:
    """A corpus of all pictures of these rows."""
    folder.mkdir()
    for each in rows:
        (folder / f"{each['id']} input%2B+é.png").write_bytes(each["image"])
        for column in ("gt_images", "retrieved_images"):
            for place, data in enumerate(each[column]):
                name = f"retrieved {place}.png" if column == "retrieved_images" else ""
                (folder / (name or f"{each['id']}_gt_{place}.png")).write_bytes(data)
    return folder


def answered(benchmark: Benchmark, letters: Mapping[str, str], setting: str) -> pd.DataFrame:
    """The verdicts on these letters, as of one model."""
    rows = {"query_id": list(letters), "answer": list(letters.values()), "setting": setting}
    groups = [benchmark.queries[name].group for name in letters]
    return judge_choices(benchmark, factories.answers(**rows, k=0, group=groups))
