"""CRAG-MM's rows in the hub's layouts, written by the `datasets` library with ClassLabels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, Features, List, Value
from datasets import Image as Picture
from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm import NAMES

Row = dict[str, Any]

MULTI = {column: list(names) for column, names in NAMES.items()}
"""The numbering of the multi-turn data card."""
SINGLE = {column: names[::-1] for column, names in MULTI.items()}
"""Another one, as the single-turn data have."""


def picture(color: str, size: tuple[int, int] = (6, 8), orientation: int = 1) -> bytes:
    """A small JPEG of one colour, its upper left corner black."""
    image = Image.new("RGB", size, color)
    image.paste("black", (0, 0, size[0] // 2, size[1] // 2))
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(file, "JPEG", quality=95, subsampling=0, exif=exif)
    return file.getvalue()


def turn(name: str, query: str = "What is this?", **labels: str) -> Row:
    """A turn whose labels are names."""
    usual = {"domain": "animal", "query_category": "simple-knowledge"}
    usual |= {"dynamism": "static", "image_quality": "normal"}
    return {"interaction_id": name, "query": query, **usual, **labels}


def session(name: str, *turns: Row, color: str = "red", url: str = "", **other: Any) -> Row:
    """A conversation on a picture of this colour, or one at an address; one question of
    the same id without `turns`.
    """
    asked = list(turns) or [turn(name)]
    answers = []
    for each in asked:
        answers.append({"interaction_id": each["interaction_id"], "ans_full": "It is a moth."})
    shown = None if url else {"bytes": picture(color), "path": None}
    told = {"session_id": name, "image": shown, "image_url": url or None}
    return {**told, "turns": asked, "answers": answers, **other}


def features(names: dict[str, list[str]], revision: str) -> Features:
    """The columns of a revision with their types."""
    labels = {column: ClassLabel(names=list(told)) for column, told in names.items()}
    text = Value("string")
    turns: Any = {"interaction_id": text, "query": text, **labels}
    answers: Any = {"interaction_id": text, "ans_full": text}
    columns: Row = {"session_id": text, "image": Picture(), "image_url": text}
    if revision == "v0.1.1":
        columns["image_quality"] = turns.pop("image_quality")
        return Features({**columns, "turns": List(turns), "answers": List(answers)})
    lists = {key: List(value) for key, value in turns.items()}
    both = {key: List(value) for key, value in answers.items()}
    return Features({**columns, "turns": lists, "answers": both})


def write_rows(
    folder: Path,
    rows: Sequence[Row],
    *,
    names: dict[str, list[str]] = SINGLE,
    revision: str = "v0.1.2",
    split: str = "validation",
    shards: int = 1,
) -> Path:
    """Shards as the hub has them, below `folder`/data; labels become numbers."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    columns = features(names, revision)
    for number in range(shards):
        part = [_as_published(row, revision) for row in rows[number::shards]]
        path = folder / "data" / f"{split}-{number:05d}-of-{shards:05d}.parquet"
        Dataset.from_list(part, features=columns).to_parquet(path)
    return folder


def _as_published(row: Row, revision: str) -> Row:
    if revision == "v0.1.1":
        turns = [dict(each) for each in row["turns"]]
        quality = [each.pop("image_quality") for each in turns]
        return {**row, "turns": turns, "image_quality": quality[0]}
    return {**row, "turns": _lists(row["turns"]), "answers": _lists(row["answers"])}


def _lists(rows: list[Row]) -> Row:
    return {key: [each[key] for each in rows] for key in rows[0]}
