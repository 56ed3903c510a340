"""Ids that TREC files can hold, out of any, and back."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from vrag_kit.errors import VragError, short

_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f]")


def safe_id(name: str) -> str:
    """The name with white space, control characters and "%" percent-encoded: different
    names stay different, and `original_id` gives them back.
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), name)


def original_id(doc_id: str) -> str:
    """The name that `safe_id` was given."""
    return unquote(doc_id)


def read_id(value: object, column: str, where: str) -> str:
    """An id of a row, a text or a whole number, as `safe_id` writes it.

    Raises `VragError`, which begins with `where`, for anything else, and for blanks.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return safe_id(value)
    raise VragError(f"{where}: {column} is {short(value)}, expected a text or a whole number.")
