"""Rubrics written as text in a judge's entry:
{"model": "o4-mini@openai", "rubric": "How well does {answer} say {references}? …"}.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from vrag_kit.config import Entry
from vrag_kit.errors import VragError, short_repr
from vrag_kit.judging.own_judge import CustomJudge
from vrag_kit.judging.rubric import Rubric, UnparsedError
from vrag_kit.types import Query
from vrag_kit.workspace import path as project_path

RUBRIC = "rubric"
"""Name of the option in a judge's entry."""
FIELDS = ("question", "references", "answer")
"""Placeholders of the text, in braces; references are separated by " | "."""
_FIELD = re.compile(rf"{{({'|'.join(FIELDS)})}}")
_ANY = re.compile(r"{([^\W\d]\w*)}")
_NUMBER = re.compile(r"(?:score:?\s*)?([-+]?\d*\.?\d+)\.?", re.IGNORECASE)


def rubric_text(entry: Entry | CustomJudge) -> str:
    """Return the text of an entry's rubric; "" without one.

    Raises `VragError` for a rubric that is no text, lacks {answer} or has an unknown placeholder,
    and for a text in place of a judge.
    """
    if isinstance(entry, str) and len(entry.split()) > 3 and not project_path(entry).is_dir():
        raise VragError(
            f"judge is {short_repr(entry)}, which are words, and no judge. What a model is asked as"
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
        f"judge: its rubric is {short_repr(words)}; expected what the model is asked, in words in"
        " which"
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
    """Return the entry of the model without its rubric; raises as `rubric_text`."""
    if not rubric_text(entry) or isinstance(entry, str):
        return entry
    return {name: value for name, value in entry.items() if name != RUBRIC}


def rubric_from_template(rubric: Rubric, words: str) -> Rubric:
    """Return a rubric with another prompt text; its scale and precheck stay.
    The reply must end with a line that is a number on the scale, or "Score: " and the number.
    """
    ends = f"from {rubric.scale.worst:g} to {rubric.scale.best:g}"
    return replace(
        rubric, prompt=partial(_filled, words), read=_number, repair=partial(_again, ends)
    )


def judge_name(judge: str, words: str) -> str:
    """Return the name of a judge with a custom rubric text, which ends with a hash of it."""
    return f"{judge}, own rubric {hashlib.sha256(words.encode()).hexdigest()[:4]}"


def _filled(words: str, query: Query, answer: str) -> str:
    told = {"question": query.text, "references": " | ".join(query.answers), "answer": answer}
    return _FIELD.sub(lambda field: told[field[1]], words)


def _number(reply: str) -> float:
    """The number in the last line of a reply."""
    last = (reply.strip().splitlines() or [""])[-1].strip(" *`")
    if (found := _NUMBER.fullmatch(last)) is None:
        raise UnparsedError(f"its last line is {short_repr(last)}, which is no number")
    return float(found[1])


def _again(ends: str, reason: str) -> str:
    return f"This cannot be read: {reason}. Reply with a number {ends} alone."
