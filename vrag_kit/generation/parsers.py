"""Parsers that extract the answer from a model's text.

A parser takes the raw text and returns fields, of which "answer" will be judged. For a text that is
not in the requested form, it may return "unreadable" instead, with the reason. A prompt set names
the parser for the form that it requests; a protocol with another form has its own function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

ParsedFields = Mapping[str, str | bool]
Reader = Callable[[str], ParsedFields]


def parse_tagged(raw: str) -> ParsedFields:
    """Return the text after the last "Answer:"; without one the whole text, marked `untagged`."""
    pieces = _ANSWER.split(raw)
    answer = pieces[-1].strip()
    return {"answer": answer} if len(pieces) > 1 else {"answer": answer, "untagged": True}


def parse_whole(raw: str) -> ParsedFields:
    """Return the whole text, without white space around it."""
    return {"answer": raw.strip()}


def parse_short(raw: str) -> ParsedFields:
    """Return the short answer of a reply with a short and a long answer:

        Short answer: …
        Long answer: …

    Each label begins a line, once, in any case and optionally in bold; any text may precede the
    first. The short answer is one line, the long one everything after its label. Anything else is
    unreadable; a label with nothing after it is an empty answer. A short answer whose reply was
    truncated later is "enough".
    """
    found = _two_answers(raw)
    if isinstance(found, str):
        return {"unreadable": found}
    return {"answer": found[0], "enough": True}


def parse_long(raw: str) -> ParsedFields:
    """Return the long answer of a reply in the form of `parse_short`."""
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
    "tagged": parse_tagged,
    "whole": parse_whole,
    "short": parse_short,
    "long": parse_long,
}
"""Parsers by the name that a prompt file uses."""
