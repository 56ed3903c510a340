"""JSON Lines files: one object per line, read with the place that messages name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Json


def read_lines(path: Path, what: str = "annotation file") -> Iterator[tuple[str, str]]:
    """Yield (where, text) for every non-blank line of a file.

    `where` is "<path> line <number>"; `what` names the kind of file in messages. A byte order
    mark is skipped. Raises `VragError` for a file that is missing, a folder, or not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{path} line {number}", line
    except FileNotFoundError as error:
        raise VragError(
            f"{path}: no such {what}. Give the path of a JSON Lines file, one object a line."
        ) from error
    except IsADirectoryError as error:
        raise VragError(
            f"{path}: this is a folder; expected the {what} (JSON Lines) inside it."
        ) from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); expected JSON Lines."
            f" Is this the {what}?"
        ) from error


def parse_object(line: str, where: str, keys: Iterable[str]) -> Json:
    """Parse a line as a JSON object without checking its fields; messages list `keys`.

    Raises `VragError` for anything else, for a key that occurs twice in an object with
    different values, and as `check_surrogates` does.
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
            f" {', '.join(keys)}."
        )
    check_surrogates(row, line, where)
    return row


def check_surrogates(found: object, text: str, where: str) -> None:
    """Raise `VragError`, which begins with `where`, if the JSON `text` escapes half a surrogate
    pair. `found` is its parsed value; such text cannot be encoded as UTF-8.
    """
    if "\\u" not in text:
        return
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise VragError(
            f"{where}: found {half!r}, half of a surrogate pair; expected text in UTF-8."
        ) from None


def _firsts(pairs: list[tuple[str, Any]], where: str) -> Json:
    """An object in which names stand several times, each with one value."""
    found: Json = {}
    for name, value in pairs:
        before = found.setdefault(name, value)
        if before is not value and before != value:
            raise VragError(
                f"{where}: {name!r} stands twice in one object, as {short_repr(before)} and"
                f" {short_repr(value)}; expected it once. Keep the right one."
            )
    return found
