"""Annotations that CRAG-MM's public data lack, from a file: entity, popularity, whether the
question needs the history, a reference query, and the image region in question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_index import percent_encode_spaces
from vrag_kit.benchmarks.json_lines import parse_object, read_lines
from vrag_kit.benchmarks.shards import read_shard
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import write_file
from vrag_kit.types import Json, JsonView, QueryId

MARKS = "marks.jsonl"
"""The annotation file in the folder of the rows."""
KEYS = (
    "interaction_id",
    "entity",
    "popularity",
    "needs_history",
    "reference_query",
    "region",
    "image_size",
)
POPULARITY = ("head", "torso", "tail")
DIAGNOSTIC = "McGill-NLP/crag-mm-diagnostic"
"""Third-party annotations of some of the public questions, on the hub (split test)."""
_NUMBERS = {"region": 4, "image_size": 2}
_TEXTS = ("entity", "reference_query")


def read_annotations(path: Path) -> dict[QueryId, Json]:
    """Read annotations, keyed by interaction; empty if there is no such file.

    Keys other than interaction_id are optional, and null values are dropped. `region` is
    x1, y1, x2, y2 in pixels of an image of `image_size` (width, height). Raises `VragError`
    at the first unusable line, and for a duplicate interaction.
    """
    if not path.is_file():
        return {}
    found: dict[QueryId, Json] = {}
    for where, line in read_lines(path, "file of marks"):
        marks = parse_annotations(parse_object(line, where, KEYS), where)
        name = marks.pop("interaction_id")
        if name in found:
            raise VragError(f"{where}: marks of {name} came before, expected them once.")
        found[name] = marks
    return found


def parse_annotations(row: JsonView, where: str) -> Json:
    """Return the annotations of a row without its null values. Raises `VragError`, which begins
    with `where`, for an unknown key and a value of another type.
    """
    if unknown := [key for key in row if key not in KEYS]:
        raise VragError(f"{where}: {unknown[0]!r} is no mark; expected {', '.join(KEYS)}.")
    marks = {key: value for key, value in row.items() if value is not None}
    name = marks.get("interaction_id")
    if not isinstance(name, str) or not name.strip():
        raise VragError(f"{where}: 'interaction_id' is {short_repr(name)}, expected a text.")
    for key, value in marks.items():
        if problem := _problem(key, value):
            raise VragError(f"{where}: {key!r} is {short_repr(value)}, expected {problem}.")
    return {**marks, "interaction_id": percent_encode_spaces(name.strip())}


def write_annotations(path: Path, marks: Mapping[QueryId, JsonView]) -> None:
    """Write annotations for `read_annotations`; raises `OSError` if that fails."""
    lines = []
    for name, told in marks.items():
        lines.append(json.dumps({"interaction_id": name, **told}, ensure_ascii=False))
    write_file(path, "".join(f"{line}\n" for line in lines))


def read_diagnostic(folder: Path | str) -> dict[QueryId, Json]:
    """Read the annotations in `DIAGNOSTIC`'s parquet files, in a folder or its folder "data".

    They are entity (the target object's name), reference_query (the question without its
    image), region and image_size. Raises `VragError` if there are no such files, and for a
    row of another form.
    """
    folder = Path(folder).expanduser()
    shards = sorted(folder.glob("test-*.parquet")) or sorted(folder.glob("data/test-*.parquet"))
    if not shards:
        raise VragError(f"{folder}: no test-….parquet; expected those of {DIAGNOSTIC}.")
    found: dict[QueryId, Json] = {}
    for shard in shards:
        for where, row in read_shard(shard, ("id", "metadata"), DIAGNOSTIC):
            marks = parse_annotations(_diagnosed(row, where), where)
            found[marks.pop("interaction_id")] = marks
    return found


def _diagnosed(row: JsonView, where: str) -> Json:
    told = row["metadata"]
    if isinstance(told, str):
        told = parse_object(told, where, ("target_roi_bbox", "image_size"))
    if not isinstance(told, dict):
        raise VragError(f"{where}: 'metadata' is {short_repr(told)}, expected an object.")
    return {
        "interaction_id": row["id"],
        "entity": told.get("target_object_name") or None,
        "reference_query": told.get("textual_only_question") or None,
        "region": told.get("target_roi_bbox") or None,
        "image_size": told.get("image_size") or None,
    }


def _problem(key: str, value: object) -> str:
    """What was expected in the place of a value; "" when it is right."""
    if key in _TEXTS and not isinstance(value, str):
        return "a text"
    if key == "popularity" and value not in POPULARITY:
        return ", ".join(POPULARITY)
    if key == "needs_history" and not isinstance(value, bool):
        return "true or false"
    if key in _NUMBERS and not _are_numbers(value, _NUMBERS[key]):
        return f"{_NUMBERS[key]} numbers"
    return ""


def _are_numbers(value: object, count: int) -> bool:
    if not isinstance(value, list) or len(value) != count:
        return False
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)
