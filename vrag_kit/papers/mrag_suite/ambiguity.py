"""Prompts about ambiguous questions (A.3, A.4, A.6), and parsers of the replies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.judging.rubric import UnparsedError
from vrag_kit.types import Document, LazyImage, Message, Prompt, Query

CLEAR, AMBIGUOUS = "CLEAR", "AMBIGUOUS"
LONGEST = 30
"""Maximum number of words of an explanation."""
WORDS: dict[str, Any] = json.loads(  # Any: texts, lists and mappings of them
    Path(__file__).with_name("ambiguity.json").read_text(encoding="utf-8")
)
"""The prompts as data, with their source; our additions are marked."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)
_LABELLED = re.compile(r"(?:[-•*]|\d+[.)])\s|rewritten question\s*:|rewrite\s*:", re.IGNORECASE)
_POINTS = re.compile(r"according to the (?:evidence|image|chart|passage)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Detection:
    """A detector's result for a question."""

    status: str
    """`CLEAR` or `AMBIGUOUS`."""
    explanation: str
    """At most `LONGEST` words."""


def detection_prompt(query: Query) -> Prompt:
    """Builds the detection prompt for a question: A.3 for one with an image, A.4 for one without.
    Its first accepted answer is included for reference.
    """
    answer = query.answers[0] if query.answers else ""
    case = _filled(WORDS["question_and_answer"], q_esc=query.text, a_esc=answer)
    if query.image is None:
        words = WORDS["without_image"].removesuffix(WORDS["question_and_answer"]) + case
        return (Message(role="user", parts=(words,)),)
    return (Message(role="user", parts=(query.image, WORDS["with_image"] + case)),)


def query_rewrite_prompt(query: Query, evidence: Sequence[Document], explanation: str) -> Prompt:
    """Builds the prompt that rewrites a question (A.6) from evidence and the `explanation` why it
    was flagged; its own image comes first.
    """
    pictures, listed = _listed(evidence)
    own = () if query.image is None else (query.image,)
    why = _filled(WORDS["flagged"], explanation=explanation)
    words = _filled(
        WORDS["query_rewrite"],
        evidence=why + listed,
        raw_question=query.text,
        raw_answer=query.answers[0] if query.answers else "",
    )
    return (Message(role="user", parts=(*own, *pictures, words)),)


def read_detection(raw: str) -> Detection:
    """Parses a reply that is one JSON object, apart from thoughts in tags and a code fence. Keys
    are "status" and "explanation", once each. Raises `UnparsedError` otherwise.
    """
    words = _THOUGHT.sub("", raw).strip()
    fenced = _FENCED.fullmatch(words)
    try:
        found = json.loads(fenced[1] if fenced else words, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise UnparsedError("it is not one JSON object") from error
    if not isinstance(found, dict) or set(found) != {"status", "explanation"}:
        raise UnparsedError("its keys are not status and explanation")
    status, explanation = found["status"], found["explanation"]
    if status not in (CLEAR, AMBIGUOUS):
        raise UnparsedError(f"status is {status!r}, not {CLEAR} or {AMBIGUOUS}")
    if not isinstance(explanation, str) or len(explanation.split()) > LONGEST:
        raise UnparsedError(f"explanation is no text of at most {LONGEST} words")
    return Detection(status, " ".join(explanation.split()))


def read_query_rewrite(raw: str) -> str:
    """Parses a reply to `query_rewrite_prompt`, which must be one line. Raises `UnparsedError` for
    several lines or none, a label or bullet before it, and references to the evidence, which the
    prompt forbids.
    """
    lines = [line.strip() for line in _THOUGHT.sub("", raw).splitlines() if line.strip()]
    if len(lines) != 1:
        raise UnparsedError(f"it has {len(lines)} lines, not one")
    if _LABELLED.match(lines[0]):
        raise UnparsedError("a label or bullet stands before the question")
    if _POINTS.search(lines[0]):
        raise UnparsedError("it points at the evidence")
    return lines[0]


def _listed(evidence: Sequence[Document]) -> tuple[list[LazyImage], str]:
    """The pictures, and all items as a list."""
    pictures: list[LazyImage] = []
    listed = ""
    for item in evidence:
        if item.image is not None:
            pictures.append(item.image)
            listed += _filled(WORDS["picture"], number=str(len(pictures)))
        if item.text is not None:
            listed += _filled(WORDS["item"], text=" ".join(item.text.split()))
    return pictures, listed.rstrip("\n")


def _filled(template: str, **words: str) -> str:
    """The template with its fields filled in one pass: braces in a question stay, and so
    do those of the template that are no fields.
    """
    names = "|".join(words)
    return re.sub(rf"\{{({names})\}}", lambda place: words[place[1]], template)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: what JSON holds
    """A JSON object; raises ValueError for a key that is there twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
