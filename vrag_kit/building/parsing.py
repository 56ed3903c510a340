"""Read a writer's words as questions in the form of the paper's Table 10: "question
(Explanation: …) (Feature: …)".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLAIN = str.maketrans("（）［］：？", "()[]:?", "`\u200b\ufeff")
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_SAME_LINE = re.compile(r"(?<=[)\]])[ \t]+(?=\d+[.)]\s+\S)")
_MARKER = re.compile(
    r"\s*(?:#+\s*)?(?:[-•‣–—]\s+|\(?\d+\s*[.):．]\s*|[①-⑳]\s*|\(?[a-h]\)\s+|[ivx]+[.)]\s+|<li>\s*|(?:Q|Question)\s*\d*\s*[.:)]\s*)",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"\*|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_LABEL = re.compile(
    r"(?:(?:^|(?<=[\n?.!;,|)\]\"”]))\s*|(?=[(\[]))([(\[]?)\s*(explanation|feature|answer)s?\s*(?::|\s[-–—]\s)",
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
            marked, line = True, line[marker.end() :]
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
    fields, rest, cut = _apart(item)
    asked, mark, behind = rest.rpartition("?")
    remark = " ".join(behind.split()).strip(f"{_QUOTES}. ")
    if asked.startswith(tuple(_QUOTES)) and behind.startswith(tuple(_QUOTES)):
        asked = asked[1:]
    question = " ".join(f"{asked.rstrip(' ?')}?".split()) if mark else remark
    unnamed = remark[1:-1] if re.fullmatch(r"\([^()]*\)|\[[^\[\]]*\]", remark) and mark else ""
    feature = fields.get("feature", "")
    problem = (
        "no question mark"
        if not mark
        else (
            "no feature"
            if not feature
            else "cut off: its last bracket is open"
            if last and cut
            else ""
        )
    )
    return ParsedQuestion(question, fields.get("explanation") or unnamed.strip(), feature, problem)


def _apart(item: str) -> tuple[dict[str, str], str, bool]:
    """(fields by name, the words outside of them up to the question mark and what
    follows it at once, whether the last field's bracket stays open).
    """
    labels = list(_LABEL.finditer(item))
    outside, fields, cut = item[: labels[0].start()] if labels else item, {}, False
    ends = [*(label.start() for label in labels), len(item)][1:]
    for label, end in zip(labels, ends, strict=True):
        value = item[label.end() : end]
        close = _close(value, 1 if label[1] else 0)
        cut = bool(label[1]) and close is None
        fields.setdefault(label[2].lower(), " ".join(value[:close].split()).strip(f"{_QUOTES};,| "))
        behind = value[close + 1 :] if close is not None else ""
        if "?" not in outside or re.search(
            r"\w[^?]*\?", behind
        ):  # a question that goes on; not an answer, nor a mark that stands twice
            outside += f" {behind}"
    return fields, outside, cut


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
