"""Parse lists and objects that a column stores as text, in JSON or Python syntax."""

from __future__ import annotations

import ast
import json


def parse_literal(text: str) -> object:
    """Parse a text as JSON, else as a Python literal; returns the text itself if it is
    neither.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
