"""What a language model is asked about claims, and how strictly its words are read."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from vrag_kit.errors import short
from vrag_kit.judging.claims import Checking, Relation, Said
from vrag_kit.judging.rubric import Unreadable
from vrag_kit.judging.strict import Asked
from vrag_kit.types import LazyImage, Message, Prompt

WORDS = json.loads((Path(__file__).parent / "claims.json").read_text(encoding="utf-8"))
"""What the model is asked, with its source."""
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_VERDICT = re.compile(r"(\d+)\s*[:.)]\s*(ENTAILMENT|NEUTRAL|CONTRADICTION)\.?", re.IGNORECASE)


def to_extract(said: Said) -> Asked[tuple[str, ...]]:
    """What a model is asked for the claims in some words."""
    words = WORDS["extract"]
    text = words["prompt"].format(
        none=words["none"],
        question=" ".join(said.question.split()),
        words=" ".join(said.words.split()),
    )
    prompt = (Message(role="user", parts=(text,)),)
    return Asked(prompt=prompt, read=read_claims, owner=said.query_id)


def to_check(call: Checking) -> Asked[tuple[Relation, ...]]:
    """What a model is asked about claims and an item."""
    read = partial(read_relations, n=len(call.claims))
    return Asked(prompt=_checking_prompt(call), read=read, owner=call.query_id)


def _checking_prompt(call: Checking) -> Prompt:
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


def read_claims(raw: str) -> tuple[str, ...]:
    """The claims in a reply, one a line, each once; none where it says so.

    Raises `Unreadable` for no words, and where the word for no claim stands among claims.
    """
    words = _THOUGHT.sub("", raw)
    lines = [" ".join(line.split()) for line in words.splitlines()]
    claims = list(dict.fromkeys(line for line in lines if line))
    none = WORDS["extract"]["none"]
    if not claims:
        raise Unreadable("it has no words")
    bare = [claim for claim in claims if not re.search(r"\w", claim)]
    if bare:
        raise Unreadable(f"the line {short(bare[0])} has no words")
    nothing = [claim for claim in claims if claim.strip(".").upper() == none]
    if nothing and len(claims) > 1:
        raise Unreadable(f"{none} stands beside other lines")
    return () if nothing else tuple(claims)


def read_relations(raw: str, n: int) -> tuple[Relation, ...]:
    """The labels of `n` claims in a reply: "1: NEUTRAL", one a line, in order.

    Raises `Unreadable` for any other line, and for more or fewer labels: unlike in
    RAGChecker a missing one is not NEUTRAL, and a surplus one is not cut.
    """
    lines = [line.strip() for line in _THOUGHT.sub("", raw).splitlines()]
    found: list[Relation] = []
    for line in filter(None, lines):
        verdict = _VERDICT.fullmatch(line)
        if verdict is None:
            raise Unreadable(f"the line {short(line)} is no number and label")
        if int(verdict[1]) != len(found) + 1:
            raise Unreadable(f"label {len(found) + 1} has the number {verdict[1]}")
        found.append(Relation(verdict[2].upper()))
    if len(found) != n:
        raise Unreadable(f"it has {len(found)} labels, and there are {n} claims")
    return tuple(found)
