"""The paper's prompts about ambiguous questions (A.3, A.4, A.6), and how replies are read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.judging.rubric import Unreadable
from vrag_kit.types import Evidence, LazyImage, Message, Prompt, Query

CLEAR, AMBIGUOUS = "CLEAR", "AMBIGUOUS"
LONGEST = 30
"""Words of an explanation, at most."""
WORDS: dict[str, Any] = json.loads(  # Any: texts, lists and mappings of them
    Path(__file__).with_name("ambiguity.json").read_text(encoding="utf-8")
)
"""The prompts as data, with their source and what is ours."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)
_LABELLED = re.compile(r"(?:[-•*]|\d+[.)])\s|rewritten question\s*:|rewrite\s*:", re.IGNORECASE)
_POINTS = re.compile(r"according to the (?:evidence|image|chart|passage)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Detection:
    """What an assessor says of a question."""

    status: str
    """`CLEAR` or `AMBIGUOUS`."""
    explanation: str
    """`LONGEST` words at most."""


def detection_prompt(query: Query) -> Prompt:
    """What an assessor is asked about a question: A.3's words for one with a picture,
    A.4's for one without; its first accepted answer is shown for reference.
    """
    answer = query.answers[0] if query.answers else ""
    case = _filled(WORDS["question_and_answer"], q_esc=query.text, a_esc=answer)
    if query.image is None:
        words = WORDS["without_image"].removesuffix(WORDS["question_and_answer"]) + case
        return (Message(role="user", parts=(words,)),)
    return (Message(role="user", parts=(query.image, WORDS["with_image"] + case)),)


def query_rewrite_prompt(query: Query, evidence: Sequence[Evidence], explanation: str) -> Prompt:
    """How a question is asked to be said anew (A.6), from evidence and the `explanation`
    why it was flagged; its own picture stands first.
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
    """The one JSON object that a reply is, but for thoughts in tags and a code fence:
    "status" and "explanation", once each. Raises `Unreadable` for all else.
    """
    words = _THOUGHT.sub("", raw).strip()
    fenced = _FENCED.fullmatch(words)
    try:
        found = json.loads(fenced[1] if fenced else words, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise Unreadable("it is not one JSON object") from error
    if not isinstance(found, dict) or set(found) != {"status", "explanation"}:
        raise Unreadable("its keys are not status and explanation")
    status, explanation = found["status"], found["explanation"]
    if status not in (CLEAR, AMBIGUOUS):
        raise Unreadable(f"status is {status!r}, not {CLEAR} or {AMBIGUOUS}")
    if not isinstance(explanation, str) or len(explanation.split()) > LONGEST:
        raise Unreadable(f"explanation is no text of at most {LONGEST} words")
    return Detection(status, " ".join(explanation.split()))


def read_query_rewrite(raw: str) -> str:
    """The one line that a reply to `query_rewrite_prompt` is. Raises `Unreadable` for
    several lines or none, a label or bullet before it, and words that point at the
    evidence, which the prompt forbids.
    """
    lines = [line.strip() for line in _THOUGHT.sub("", raw).splitlines() if line.strip()]
    if len(lines) != 1:
        raise Unreadable(f"it has {len(lines)} lines, not one")
    if _LABELLED.match(lines[0]):
        raise Unreadable("a label or bullet stands before the question")
    if _POINTS.search(lines[0]):
        raise Unreadable("it points at the evidence")
    return lines[0]


def _listed(evidence: Sequence[Evidence]) -> tuple[list[LazyImage], str]:
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
