"""Readers: what of a model's words is its answer.

A reader takes the words as they came and gives fields, of which "answer" is what will be
judged. A wording names the one that fits the form it asks for; a protocol whose answers
have another form brings a function of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Fields = Mapping[str, str | bool]
Reader = Callable[[str], Fields]


def read_tagged(raw: str) -> Fields:
    """The text after the last "Answer:"; all of it when there is none, marked
    `untagged`.
    """
    pieces = re.split(r"answer\s*:", raw, flags=re.IGNORECASE)
    answer = pieces[-1].strip()
    return {"answer": answer} if len(pieces) > 1 else {"answer": answer, "untagged": True}


def read_whole(raw: str) -> Fields:
    """All that was said, without white space around it."""
    return {"answer": raw.strip()}


READERS: dict[str, Reader] = {"tagged": read_tagged, "whole": read_whole}
"""By the name that a wording's file gives them."""
