"""Lists and objects that a column holds as text, as JSON or as Python writes them."""

from __future__ import annotations

import ast
import json


def read_literal(text: str) -> object:
    """The value that a text writes down, as JSON or else as Python does; the text itself
    where it is neither.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
