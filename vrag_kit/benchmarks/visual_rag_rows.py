"""Rows of Visual-RAG annotations (v1 and v2), each checked field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError, short
from vrag_kit.plain import Json

KEYS = {"images": dict, "answer": list, "question": str, "sn": str}
"""What each row has."""
KEYS_V2 = {"y_rate": (int, float), "y_count": (int,), "is_changed_v2": (str,)}
"""What a row of v2 says of itself."""
CHANGES_V2 = ("unchanged", "updated_image_label", "updated_qa")
"""The words of `is_changed_v2`, as the authors' page explains them."""

Row = dict[str, Any]  # as JSON gives it; `parse_row` checks the types of KEYS


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """(where, text) of every line of an annotation file that is not blank.

    `where` is "<path> line <number>". A byte order mark is no text.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{path} line {number}", line
    except FileNotFoundError as error:
        raise VragError(
            f"{path}: no such annotation file. Give the path of a JSON Lines file, one query a row."
        ) from error
    except IsADirectoryError as error:
        raise VragError(
            f"{path}: this is a folder; expected the annotation file (JSON Lines) inside it."
        ) from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); expected JSON Lines."
            " Is this the annotation file?"
        ) from error


def no_rows(path: Path) -> VragError:
    """The error for a file of blank lines."""
    return VragError(
        f"{path}: no queries found, expected one JSON object a line. Check that this is the"
        " annotation file."
    )


def parse_row(line: str, where: str) -> Row:
    """One row of annotations; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where)
    _check_keys(row, where)
    if not all(isinstance(answer, str) and answer.strip() for answer in row["answer"]):
        raise VragError(
            f"{where}: 'answer' is {short(row['answer'])}, expected a list of non-empty strings."
        )
    check_labels(row["images"], where)
    if not any(row["images"].values()):
        raise VragError(
            f"{where}: the query has no clue: all {len(row['images'])} labels are 0, expected at"
            " least one 1. Correct the labels or remove the row."
        )
    return row


def parse_object(line: str, where: str) -> Row:
    """The JSON object of a line, its fields unchecked.

    Raises `VragError` at a name that stands twice in an object with different values.
    """

    def once(pairs: list[tuple[str, Any]]) -> Json:
        found = dict(pairs)
        return found if len(found) == len(pairs) else _firsts(pairs, where)

    try:
        row = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise VragError(
            f"{where}: not JSON ({error.msg} at column {error.colno}); expected one JSON object a"
            " line."
        ) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise VragError(
            f"{where}: not JSON that can be read ({error}); expected one JSON object a line."
        ) from error
    if not isinstance(row, dict):
        raise VragError(
            f"{where}: found a JSON {type(row).__name__}, expected an object with the keys"
            f" {', '.join(KEYS)}."
        )
    return row


def check_labels(images: Mapping[str, object], where: str) -> None:
    """Raise `VragError` at an image whose label is neither 0 nor 1."""
    for doc_id, label in images.items():
        if isinstance(label, bool) or label not in (0, 1):
            raise VragError(
                f"{where}: image {doc_id!r} has label {short(label)}, expected 1 (clue) or 0 (no"
                " clue)."
            )


def _firsts(pairs: list[tuple[str, Any]], where: str) -> Json:
    """An object in which names stand several times, each with one value."""
    found: Json = {}
    for name, value in pairs:
        before = found.setdefault(name, value)
        if before is not value and before != value:
            raise VragError(
                f"{where}: {name!r} stands twice in one object, as {short(before)} and"
                f" {short(value)}; expected it once. Keep the right one."
            )
    return found


def _check_keys(row: Row, where: str) -> None:
    for key, kind in KEYS.items():
        if key not in row:
            raise VragError(
                f"{where}: no key {key!r}; found {', '.join(map(repr, row)) or 'nothing'}, expected"
                f" {', '.join(map(repr, KEYS))}."
            )
        if not isinstance(row[key], kind) or not row[key]:
            raise VragError(
                f"{where}: {key!r} is {short(row[key])}, expected a non-empty {kind.__name__}."
            )
    for key, kinds in KEYS_V2.items():
        if key in row and not _fits(row[key], kinds):
            expected = "a number" if key == "y_rate" else kinds[0].__name__
            raise VragError(f"{where}: {key!r} is {short(row[key])}, expected {expected}.")


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    is_nan = value != value
    return isinstance(value, kinds) and not isinstance(value, bool) and not is_nan
