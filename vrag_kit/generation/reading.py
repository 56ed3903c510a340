"""Readers: what of a model's words is its answer.

A reader takes the words as they came and gives fields, of which "answer" is what will be
judged; where the words are not in the form that was asked for, it may give "unreadable"
instead, which says why. A wording names the reader that fits the form it asks for; a
protocol whose answers have another form brings a function of its own.
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
    pieces = _ANSWER.split(raw)
    answer = pieces[-1].strip()
    return {"answer": answer} if len(pieces) > 1 else {"answer": answer, "untagged": True}


def read_whole(raw: str) -> Fields:
    """All that was said, without white space around it."""
    return {"answer": raw.strip()}


def read_short(raw: str) -> Fields:
    """The short one of two answers, which stand on lines of their own:

        Short answer: …
        Long answer: …

    Each label begins a line, once, whatever its case and however marked in bold; any
    words may stand before the first. The short answer is one line, the long one all that
    follows its label. Anything else is unreadable; a label with nothing behind it is an
    empty answer. A short answer whose reply was cut off later is "enough".
    """
    found = _two_answers(raw)
    if isinstance(found, str):
        return {"unreadable": found}
    return {"answer": found[0], "enough": True}


def read_long(raw: str) -> Fields:
    """The long one of the two answers of `read_short`."""
    found = _two_answers(raw)
    return {"unreadable": found} if isinstance(found, str) else {"answer": found[1]}


def _two_answers(raw: str) -> tuple[str, str] | str:
    """(short answer, long answer), or why they cannot be told."""
    labels = list(_LABEL.finditer(raw))
    names = [found["name"].lower() for found in labels]
    for name in ("short", "long"):
        if (count := names.count(name)) != 1:
            there = f"{count} lines begin" if count else "no line begins"
            return f"{there} with “{name.capitalize()} answer:”"
    if names != ["short", "long"]:
        return "the long answer stands before the short one"
    short = _unmarked(raw[labels[0].end() : labels[1].start()])
    if "\n" in short:
        return "the short answer is longer than a line"
    return short, _unmarked(raw[labels[1].end() :])


def _unmarked(words: str) -> str:
    """Words without white space and marks of bold type around them."""
    return words.strip().strip("*").strip()


_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
_LABEL = re.compile(
    r"^[ \t]*\**[ \t]*(?P<name>short|long)[ \t]+answer[ \t]*\**[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)


READERS: dict[str, Reader] = {
    "tagged": read_tagged,
    "whole": read_whole,
    "short": read_short,
    "long": read_long,
}
"""By the name that a wording's file gives them."""
