"""A writer's words read as questions, in the form of the paper's Table 10.

That form is "question (Explanation: …) (Feature: …)".

New questions are asked for as JSON, which `structured` reads; this reads what was
written in the paper's own form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLAIN = str.maketrans("（）［］：？", "()[]:?", "`\u200b\ufeff")
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_SAME_LINE = re.compile(r"(?<=[)\]])[ \t]+(?=\d+[.)]\s+\S)")
_MARKER = re.compile(
    r"\s*(?:#+\s*)?"
    r"(?:[-•‣–—]\s+|\(?\d+\s*[.):．]\s*|[①-⑳]\s*|\(?[a-h]\)\s+|[ivx]+[.)]\s+|<li>\s*"
    r"|(?:Q|Question)\s*\d*\s*[.:)]\s*)",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"\*|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_LABEL = re.compile(
    r"(?:(?:^|(?<=[\n?.!;,|)\]\"”]))\s*|(?=[(\[]))([(\[]?)\s*"
    r"(explanation|feature|answer)s?\s*(?::|\s[-–—]\s)",
    re.IGNORECASE,
)
_ASKING = re.compile(r"(?:what|which|how|is|are|does|do|can|has|have|when|during)\b", re.IGNORECASE)
_QUOTES = '"“”'


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """One question in a writer's words, or what looks like one."""

    question: str  # in one line; of one that cannot be used what there is
    explanation: str = ""  # "" where none is given
    feature: str = ""  # "" only where `problem` says so
    problem: str = ""  # why it cannot be used; "" for one that can


def parse_questions(text: str) -> list[ParsedQuestion]:
    """The questions in `text`, in order; [] when nothing looks like one.

    One question is a line, or a line and those that carry on with its explanation and
    feature. Numbers, bullets, bold and italic type, headings, prose, quotes around a
    question, thoughts in <think> tags, square brackets, the two brackets in any order
    or lacking, and an answer given though none was asked for are let pass. A bracket
    behind the question without a name is its explanation. What has no question mark or
    no feature, or is cut off at the end of `text`, is returned with its `problem`.
    """
    items = list(_items(_THOUGHT.sub("\n", text).translate(_PLAIN)))
    return [_parse(item, last=place == len(items)) for place, item in enumerate(items, start=1)]


def _items(text: str) -> Iterator[str]:
    """The lines that ask, each with the lines that belong to it."""
    item, listed = "", False
    for marked, line in _lines(text):
        if item and (_LABEL.match(line) or (not marked and _goes_on(item, line, listed))):
            item = f"{item}\n{line}"
        else:
            if _looks_asked(item, listed):
                yield item
            item, listed = line, marked
    if _looks_asked(item, listed or bool(item)):
        yield item


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it has a number or bullet, the words) of each line that has words;
    without emphasis.
    """
    for raw in _SAME_LINE.sub("\n", text).splitlines():
        line = _EMPHASIS.sub("", re.sub(r"^\s*\*\s+", "- ", raw))
        marked = False
        while marker := _MARKER.match(line):  # "1. Question: …"
            marked = True
            line = line[marker.end() :]
        if line.strip():
            yield marked, line.strip()


def _goes_on(item: str, line: str, listed: bool) -> bool:
    """Whether an item that its writer wrapped goes on with `line`."""
    opened = sum((letter in "([") - (letter in ")]") for letter in item) > 0
    return (opened and not _ASKING.match(line)) or (
        listed and "?" not in item and not _LABEL.search(item) and line[0].islower()
    )


def _looks_asked(item: str, listed: bool) -> bool:
    return (
        "?" in item
        or any(label[2].lower() == "feature" for label in _LABEL.finditer(item))
        or (listed and bool(_ASKING.match(item)))
    )


def _parse(item: str, *, last: bool) -> ParsedQuestion:
    parts = _apart(item)
    mark = "?" in parts.outside
    place = parts.outside.rfind("?")
    asked, behind = parts.outside[: max(place, 0)], parts.outside[place + 1 :]
    remark = " ".join(behind.split()).strip(f"{_QUOTES}. ")
    if asked.startswith(tuple(_QUOTES)) and behind.startswith(tuple(_QUOTES)):
        asked = asked[1:]
    question = " ".join(f"{asked.rstrip(' ?')}?".split()) if mark else remark
    unnamed = remark[1:-1] if re.fullmatch(r"\([^()]*\)|\[[^\[\]]*\]", remark) and mark else ""
    explanation = parts.fields.get("explanation") or unnamed.strip()
    feature = parts.fields.get("feature", "")
    problem = ""
    if not mark:
        problem = "no question mark"
    elif not feature:
        problem = "no feature"
    elif last and parts.cut:
        problem = "cut off: its last bracket is open"
    return ParsedQuestion(question, explanation, feature, problem)


@dataclass(slots=True)
class _Parts:
    """An item taken apart."""

    outside: str  # the words up to the question mark and what follows it at once
    fields: dict[str, str]  # explanation, feature and answer, as far as they are given
    cut: bool = False  # whether the last field's bracket stays open


def _apart(item: str) -> _Parts:
    labels = list(_LABEL.finditer(item))
    ends = [*(label.start() for label in labels), len(item)]
    parts = _Parts(item[: ends[0]], {})
    for label, end in zip(labels, ends[1:], strict=True):
        value = item[label.end() : end]
        close = _close(value, 1 if label[1] else 0)
        parts.cut = bool(label[1]) and close is None
        words = " ".join(value[:close].split()).strip(f"{_QUOTES};,| ")
        parts.fields.setdefault(label[2].lower(), words)
        behind = value[close + 1 :] if close is not None else ""
        # a question that goes on; not an answer, nor a mark that stands twice
        if "?" not in parts.outside or re.search(r"\w[^?]*\?", behind):
            parts.outside += f" {behind}"
    return parts


def _close(value: str, opened: int) -> int | None:
    """Where the bracket closes in which a value stands; None when it does not.

    `opened` is 1 when it is known to stand in one.
    """
    depth = opened
    for place, letter in enumerate(value):
        depth += (letter in "([") - (letter in ")]")
        if depth < opened:
            return place
    return None
