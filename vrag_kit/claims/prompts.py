"""Prompts for extracting and checking claims, and strict parsers of the replies."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from vrag_kit.claims.verdicts import AnswerText, EntailmentLabel, EntailmentRequest
from vrag_kit.errors import short_repr
from vrag_kit.judging.llm_judge import Request
from vrag_kit.judging.rubric import UnparsedError
from vrag_kit.types import LazyImage, Message, Prompt

WORDS = json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8"))
"""The prompt texts, with their source."""
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_VERDICT = re.compile(r"(\d+)\s*[:.)]\s*(ENTAILMENT|NEUTRAL|CONTRADICTION)\.?", re.IGNORECASE)


def extraction_prompt(answer: AnswerText) -> Request[tuple[str, ...]]:
    """Build the request that extracts the claims of an answer."""
    words = WORDS["extract"]
    text = words["prompt"].format(
        none=words["none"],
        question=" ".join(answer.question.split()),
        words=" ".join(answer.words.split()),
    )
    prompt = (Message(role="user", parts=(text,)),)
    return Request(prompt=prompt, read=parse_claims, owner=answer.query_id)


def checking_prompt(call: EntailmentRequest) -> Request[tuple[EntailmentLabel, ...]]:
    """Build the request that checks claims against an item."""
    read = partial(parse_entailment_labels, n=len(call.claims))
    return Request(prompt=_checking_prompt(call), read=read, owner=call.query_id)


def _checking_prompt(call: EntailmentRequest) -> Prompt:
    """The item, then the claims; both a picture and its caption where it has both."""
    words = WORDS["check"]
    lines = [
        words["claim"].format(number=number, claim=claim)
        for number, claim in enumerate(call.claims, start=1)
    ]
    asked = words["claims"].format(claims="\n".join(lines))
    shown: list[str | LazyImage] = [words["opening"] + "\n"]
    if call.item.image is not None:
        shown.append(call.item.image)
    if call.item.text is not None:
        shown.append(" ".join(call.item.text.split()) + "\n")
    return (Message(role="user", parts=(*shown, f"\n{asked}")),)


def parse_claims(raw: str) -> tuple[str, ...]:
    """Parse the claims in a reply, one per line, without duplicates; none where it says so.

    Raises `UnparsedError` for a line or reply without words, and for "NONE" among claims.
    """
    words = _THOUGHT.sub("", raw)
    lines = [" ".join(line.split()) for line in words.splitlines()]
    claims = list(dict.fromkeys(line for line in lines if line))
    none = WORDS["extract"]["none"]
    if not claims:
        raise UnparsedError("it has no words")
    bare = [claim for claim in claims if not re.search(r"\w", claim)]
    if bare:
        raise UnparsedError(f"the line {short_repr(bare[0])} has no words")
    nothing = [claim for claim in claims if claim.strip(".").upper() == none]
    if nothing and len(claims) > 1:
        raise UnparsedError(f"{none} stands beside other lines")
    return () if nothing else tuple(claims)


def parse_entailment_labels(raw: str, n: int) -> tuple[EntailmentLabel, ...]:
    """Parse the labels of `n` claims in a reply: "1: NEUTRAL", one per line, in order.

    Raises `UnparsedError` for any other line, and for more or fewer labels. Unlike in RAGChecker, a
    missing label is not NEUTRAL, and a surplus one is not dropped.
    """
    lines = [line.strip() for line in _THOUGHT.sub("", raw).splitlines()]
    found: list[EntailmentLabel] = []
    for line in filter(None, lines):
        verdict = _VERDICT.fullmatch(line)
        if verdict is None:
            raise UnparsedError(f"the line {short_repr(line)} is no number and label")
        if int(verdict[1]) != len(found) + 1:
            raise UnparsedError(f"label {len(found) + 1} has the number {verdict[1]}")
        found.append(EntailmentLabel(verdict[2].upper()))
    if len(found) != n:
        raise UnparsedError(f"it has {len(found)} labels, and there are {n} claims")
    return tuple(found)
