"""Encode arbitrary names as ids that TREC files can hold, and decode them."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from vrag_kit.errors import VragError, short_repr

_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f]")


def encode_id(name: str) -> str:
    """Percent-encode the white space, control characters and "%" of a name. Different names
    stay different, and `decode_id` restores them.
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), name)


def decode_id(doc_id: str) -> str:
    """Return the name that `encode_id` encoded."""
    return unquote(doc_id)


def parse_id(value: object, column: str, where: str) -> str:
    """Parse an id of a row, a text or a whole number, and encode it as `encode_id` does.

    Raises `VragError`, which begins with `where`, for any other value and for blank text.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return encode_id(value)
    raise VragError(f"{where}: {column} is {short_repr(value)}, expected a text or a whole number.")
