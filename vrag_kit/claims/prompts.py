"""Prompts for extracting and checking claims, and strict parsers of the replies."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from vrag_kit.claims.verdicts import AnswerText, Claims, EntailmentLabel, EntailmentRequest
from vrag_kit.errors import short_repr
from vrag_kit.generation.prompts import strip_thoughts
from vrag_kit.judging.llm_judge import Request
from vrag_kit.judging.rubric import UnparsedError, one_line
from vrag_kit.types import LazyImage, Message

WORDS = json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8"))
"""The prompt texts, with their source."""
_VERDICT = re.compile(r"(\d+)\s*[:.)]\s*(ENTAILMENT|NEUTRAL|CONTRADICTION)\.?", re.IGNORECASE)


def extraction_request(answer: AnswerText) -> Request[Claims]:
    """Build the request that extracts the claims of an answer."""
    words = {"question": one_line(answer.question), "words": one_line(answer.words)}
    text = WORDS["extract"]["prompt"].format(none=WORDS["extract"]["none"], **words)
    prompt = (Message(role="user", parts=(text,)),)
    return Request(prompt=prompt, read=parse_claims, owner=answer.query_id)


def checking_request(call: EntailmentRequest) -> Request[tuple[EntailmentLabel, ...]]:
    """Build the request that checks claims against an item: its image, its text, or both, and then
    the claims.
    """
    words = WORDS["check"]
    numbered = enumerate(call.claims, start=1)
    lines = [words["claim"].format(number=number, claim=claim) for number, claim in numbered]
    parts: list[str | LazyImage] = [words["opening"] + "\n"]
    if call.item.image is not None:
        parts.append(call.item.image)
    if call.item.text is not None:
        parts.append(one_line(call.item.text) + "\n")
    parts.append("\n" + words["claims"].format(claims="\n".join(lines)))
    prompt = (Message(role="user", parts=tuple(parts)),)
    read = partial(parse_entailment_labels, n=len(call.claims))
    return Request(prompt=prompt, read=read, owner=call.query_id)


def parse_claims(raw: str) -> Claims:
    """Parse the claims in a reply, one per line, without duplicates; none where it says so.

    Raises `UnparsedError` for a line or reply without words, and for "NONE" among claims.
    """
    none = WORDS["extract"]["none"]
    lines = map(one_line, strip_thoughts(raw).splitlines())
    claims = tuple(dict.fromkeys(filter(None, lines)))
    if not claims:
        raise UnparsedError("it has no words")
    if bare := [claim for claim in claims if not re.search(r"\w", claim)]:
        raise UnparsedError(f"the line {short_repr(bare[0])} has no words")
    if not any(claim.strip(".").upper() == none for claim in claims):
        return claims
    if len(claims) > 1:
        raise UnparsedError(f"{none} stands beside other lines")
    return ()


def parse_entailment_labels(raw: str, n: int) -> tuple[EntailmentLabel, ...]:
    """Parse the labels of `n` claims in a reply: "1: NEUTRAL", one per line, in order.

    Raises `UnparsedError` for any other line, and for more or fewer labels. Unlike in RAGChecker, a
    missing label is not NEUTRAL, and a surplus one is not dropped.
    """
    found: list[EntailmentLabel] = []
    for line in filter(None, map(str.strip, strip_thoughts(raw).splitlines())):
        verdict = _VERDICT.fullmatch(line)
        if verdict is None:
            raise UnparsedError(f"the line {short_repr(line)} is no number and label")
        if int(verdict[1]) != len(found) + 1:
            raise UnparsedError(f"label {len(found) + 1} has the number {verdict[1]}")
        found.append(EntailmentLabel(verdict[2].upper()))
    if len(found) != n:
        raise UnparsedError(f"it has {len(found)} labels, and there are {n} claims")
    return tuple(found)
