"""Parse and check the rows of Visual-RAG annotations (v1 and v2), field by field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.json_lines import parse_object
from vrag_kit.errors import VragError, short_repr

KEYS = {"images": dict, "answer": list, "question": str, "sn": str}
"""The required keys of a row, with their types."""
KEYS_V2 = {"y_rate": (int, float), "y_count": (int,), "is_changed_v2": (str,)}
"""The additional keys of a row of v2, with their types."""

AnnotationRow = dict[str, Any]  # as JSON gives it; `parse_row` checks the types of KEYS


def empty_file_error(path: Path) -> VragError:
    """Return the error for an annotation file without rows."""
    return VragError(
        f"{path}: no queries found, expected one JSON object a line. Check that this is the"
        " annotation file."
    )


def parse_row(line: str, where: str) -> AnnotationRow:
    """Parse and check a row of annotations; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, KEYS)
    _check_keys(row, where)
    if not all(isinstance(answer, str) and answer.strip() for answer in row["answer"]):
        raise VragError(
            f"{where}: 'answer' is {short_repr(row['answer'])}, expected a list of non-empty"
            " strings."
        )
    check_labels(row["images"], where)
    if not any(row["images"].values()):
        raise VragError(
            f"{where}: the query has no clue: all {len(row['images'])} labels are 0, expected at"
            " least one 1. Correct the labels or remove the row."
        )
    return row


def check_labels(images: Mapping[str, object], where: str) -> None:
    """Raise `VragError` at the first image whose label is neither 0 nor 1."""
    for doc_id, label in images.items():
        if isinstance(label, bool) or label not in (0, 1):
            raise VragError(
                f"{where}: image {doc_id!r} has label {short_repr(label)}, expected 1 (clue) or 0"
                " (no"
                " clue)."
            )


def _check_keys(row: AnnotationRow, where: str) -> None:
    for key, kind in KEYS.items():
        if key not in row:
            raise VragError(
                f"{where}: no key {key!r}; found {', '.join(map(repr, row)) or 'nothing'}, expected"
                f" {', '.join(map(repr, KEYS))}."
            )
        if not isinstance(row[key], kind) or not row[key]:
            raise VragError(
                f"{where}: {key!r} is {short_repr(row[key])}, expected a non-empty {kind.__name__}."
            )
    for key, kinds in KEYS_V2.items():
        if key in row and not _fits(row[key], kinds):
            expected = "a number" if key == "y_rate" else kinds[0].__name__
            raise VragError(f"{where}: {key!r} is {short_repr(row[key])}, expected {expected}.")


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    is_nan = value != value
    return isinstance(value, kinds) and not isinstance(value, bool) and not is_nan
