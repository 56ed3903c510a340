"""Parse the JSON in which a writer model returns questions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """One question of a writer's reply, or an item that resembles one."""

    question: str  # in one line; of one that cannot be used what there is
    explanation: str = ""  # "" where none is given
    feature: str = ""  # "" only where `problem` says so
    problem: str = ""  # why it cannot be used; "" for one that can


def read_questions_json(text: str) -> list[ParsedQuestion]:
    """Parse the questions in a JSON reply, in order; [] for anything else.
    Format: `{"questions": [{"question": …, "explanation": …, "feature": …}]}`.

    Only thoughts in <think> tags and a code fence may surround the JSON. An item without a
    question, a question mark or a feature is returned with its `problem`; an explanation is
    optional.
    """
    words = _THOUGHT.sub("", text).strip()
    fenced = _FENCED.fullmatch(words)
    try:
        found = json.loads(fenced[1] if fenced else words)
    except ValueError:
        return []
    items = found.get("questions") if isinstance(found, dict) else None
    return [_read(item) for item in items] if isinstance(items, list) else []


def _read(item: object) -> ParsedQuestion:
    if not isinstance(item, dict):
        return ParsedQuestion(str(item), problem="no JSON object")
    question, feature = _words(item, "question"), _words(item, "feature")
    problem = ""
    if not question.endswith("?"):
        problem = "no question mark"
    elif not feature:
        problem = "no feature"
    return ParsedQuestion(question, _words(item, "explanation"), feature, problem)


def _words(item: Mapping[str, object], name: str) -> str:
    """A field in one line; "" where it is lacking or no text."""
    value = item.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""
