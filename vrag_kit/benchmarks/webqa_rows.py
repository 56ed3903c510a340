"""Read and check the rows of WebQA_train_val.json, and strip the quotes around its texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError, short_repr

WebQARow = dict[str, Any]  # as JSON gives it; `check_row` looks at the types of _KEYS
_KEYS = {"Q": str, "A": list, "img_posFacts": list, "img_negFacts": list}
_TEXT_KEYS = {"txt_posFacts": list, "txt_negFacts": list}


def read_annotations(path: Path) -> dict[str, WebQARow]:
    """Read WebQA_train_val.json as a mapping from Guid to unparsed row.

    Raises `VragError` for a missing file, or one that is not an object of objects.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise VragError(
            f"{path}: no such annotation file. Give the path of WebQA_train_val.json."
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise VragError(
            f"{path}: not JSON ({error}); expected one object with a question for each Guid."
            " Fetch WebQA_train_val.json again."
        ) from error
    if not isinstance(content, dict) or not all(isinstance(row, dict) for row in content.values()):
        raise VragError(
            f"{path}: found a JSON {type(content).__name__}, expected one object with an object for"
            " each Guid. Is this WebQA_train_val.json?"
        )
    return content


def check_row(guid: str, row: WebQARow, where: str, *, texts: bool) -> None:
    """Raise `VragError`, which begins with `where`, for an incomplete row and for a Guid that TREC
    files cannot hold; with `texts` the lists of snippets are required too.
    """
    keys = _KEYS | _TEXT_KEYS if texts else _KEYS
    if re.search(r"\s", guid) or not guid:
        raise VragError(
            f"{where}: the Guid is empty or contains white space, which TREC files cannot hold."
            " Rename it."
        )
    for key, kind in keys.items():
        if key not in row:
            is_test = "img_Facts" in row
            hint = " WebQA_test.json has no labels; use WebQA_train_val.json." if is_test else ""
            raise VragError(
                f"{where}: no key {key!r}; found {', '.join(map(repr, row))}, expected"
                f" {', '.join(map(repr, keys))}.{hint}"
            )
        if not isinstance(row[key], kind):
            expected = "text" if kind is str else "list"
            raise VragError(f"{where}: {key!r} is {short_repr(row[key])}, expected a {expected}.")
    if not strip_quotes(row["Q"]) or not all(isinstance(answer, str) for answer in row["A"]):
        raise VragError(
            f"{where}: 'Q' is {short_repr(row['Q'])} and 'A' is {short_repr(row['A'])}, expected a"
            " question"
            " and a list of texts."
        )


def strip_quotes(text: str) -> str:
    """Strip the quotes that WebQA puts around questions and answers."""
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text
