"""A rubric that a parameter tells in words, beside the model that judges:
{"model": "o4-mini@openai", "rubric": "How well does {answer} say {references}? …"}.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from vrag_kit.errors import VragError, short
from vrag_kit.judging.own_judge import JudgeClass
from vrag_kit.judging.rubric import Rubric, Unreadable
from vrag_kit.options import Entry
from vrag_kit.types import Query
from vrag_kit.workspace import path as project_path

RUBRIC = "rubric"
"""The option of a judge's entry."""
FIELDS = ("question", "references", "answer")
"""What may stand in the words, in braces: the references are parted by " | "."""
_FIELD = re.compile(rf"{{({'|'.join(FIELDS)})}}")
_ANY = re.compile(r"{([^\W\d]\w*)}")
_NUMBER = re.compile(r"(?:score:?\s*)?([-+]?\d*\.?\d+)\.?", re.IGNORECASE)


def words_of(entry: Entry | JudgeClass) -> str:
    """The words of an entry's rubric; "" where it tells none.

    Raises `VragError` for words that are no text, do not show the answer, or name in
    braces what is not filled in, and for words in the place of a judge.
    """
    if isinstance(entry, str) and len(entry.split()) > 3 and not project_path(entry).is_dir():
        raise VragError(
            f"judge is {short(entry)}, which are words, and no judge. What a model is asked as"
            " judge is an option of its entry: judge: {model: <model>, rubric: <words>}."
        )
    if not isinstance(entry, Mapping) or RUBRIC not in entry:
        return ""
    words = entry[RUBRIC]
    shown = ", ".join(f"{{{name}}}" for name in FIELDS)
    if isinstance(words, str) and "{answer}" in words:
        _check_fields(words, shown)
        return words
    raise VragError(
        f"judge: its rubric is {short(words)}; expected what the model is asked, in words in which"
        f" {{answer}} stands; {shown} are filled in. A rubric in Python is passed to"
        " load_judge(…, rubric=…) (README, The judge)."
    )


def _check_fields(words: str, shown: str) -> None:
    """Raise `VragError` where the judge would read "{reference}" and no reference."""
    unknown = [name for name in _ANY.findall(words) if name not in FIELDS]
    if unknown:
        near = get_close_matches(unknown[0], FIELDS, 1)
        meant = f" Did you mean {{{near[0]}}}?" if near else ""
        raise VragError(
            f"judge: its rubric has {{{unknown[0]}}}, which is not filled in; expected {shown},"
            f" each at will but {{answer}}.{meant}"
        )


def without_rubric(entry: Entry) -> Entry:
    """The entry of the model alone; raises as `words_of`."""
    if not words_of(entry) or isinstance(entry, str):
        return entry
    return {name: value for name, value in entry.items() if name != RUBRIC}


def in_words(rubric: Rubric, words: str) -> Rubric:
    """A protocol's rubric with other words: its scale stays, and what it settles without
    asking; the reply ends with a line that is a number on the scale, or "Score: " and it.
    """
    ends = f"from {rubric.scale.worst:g} to {rubric.scale.best:g}"
    return replace(
        rubric, prompt=partial(_filled, words), read=_number, repair=partial(_again, ends)
    )


def name_of(judge: str, words: str) -> str:
    """What a judge is called that is asked in such words, and not in a protocol's."""
    return f"{judge}, own rubric {hashlib.sha256(words.encode()).hexdigest()[:4]}"


def _filled(words: str, query: Query, answer: str) -> str:
    told = {"question": query.text, "references": " | ".join(query.answers), "answer": answer}
    return _FIELD.sub(lambda field: told[field[1]], words)


def _number(reply: str) -> float:
    """The number in the last line of a reply."""
    last = (reply.strip().splitlines() or [""])[-1].strip(" *`")
    if (found := _NUMBER.fullmatch(last)) is None:
        raise Unreadable(f"its last line is {short(last)}, which is no number")
    return float(found[1])


def _again(ends: str, reason: str) -> str:
    return f"This cannot be read: {reason}. Reply with a number {ends} alone."
