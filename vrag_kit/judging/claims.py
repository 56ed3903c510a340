"""Claims and what evidence says about them: the protocols `ClaimExtractor` and
`ClaimChecker`, and the words that pass between them.

An answer is taken apart into claims, and each claim is held against each item of
evidence. Whoever implements the two protocols, a language model or rules, gets all
metrics of `vrag_kit.analysis.claims` with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from vrag_kit.types import Evidence, Failure, Judgment, QueryId, Status


class Relation(StrEnum):
    """What an item of evidence says about a claim."""

    ENTAILMENT = "ENTAILMENT"
    """Who sees the item knows that the claim is true."""
    NEUTRAL = "NEUTRAL"
    """The item does not settle it."""
    CONTRADICTION = "CONTRADICTION"
    """Who sees the item knows that the claim is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Words to take apart, and the question that they answer."""

    query_id: QueryId
    question: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The claims in some words, or why they could not be told."""

    claims: tuple[str, ...] = ()
    """One fact each, self-contained; none twice, none empty."""
    raw: str | None = None
    """The extractor's words, unchanged; None when the call failed."""
    failure: Failure | None = None
    """Why the claims are unknown; None when they are known, be they none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checking:
    """Claims to hold against one item of evidence."""

    query_id: QueryId
    claims: tuple[str, ...]
    """At least one."""
    item: Evidence
    """A picture, a passage, or a picture with its caption, as the answerer saw it."""


class ClaimExtractor(Protocol):
    """Takes words apart into claims."""

    name: str

    def extract(self, said: Sequence[Said]) -> list[Extraction]:
        """The claims in each of them, in order; words without a fact, such as a
        refusal, have none.
        """


class ClaimChecker(Protocol):
    """Says what items of evidence say about claims, from what they show alone."""

    name: str
    fingerprint: str
    """Whose eyes judge pictures: that of the model, which may not be the answerer's;
    "" where no model does.
    """

    def check(self, checkings: Sequence[Checking]) -> list[tuple[Judgment, ...]]:
        """For each checking one judgment a claim, in order, as `related` and `unrelated`
        make them.
        """


def related(claim: str, item: Evidence, relation: Relation, raw: str | None = None) -> Judgment:
    """The judgment that `item` bears this relation to a claim: `Judgment.label` is the
    relation, score 1, 0 or −1, target (claim, doc_id).
    """
    scores = {Relation.ENTAILMENT: 1.0, Relation.NEUTRAL: 0.0, Relation.CONTRADICTION: -1.0}
    return Judgment(
        answer_id="",
        target=(claim, item.doc_id),
        label=relation.value,
        score=scores[relation],
        raw=raw,
    )


def unrelated(claim: str, item: Evidence, failure: Failure, raw: str | None = None) -> Judgment:
    """A judgment that could not be had or read: without label and score."""
    target = (claim, item.doc_id)
    return Judgment(answer_id="", target=target, label="", score=None, raw=raw, failure=failure)


def relation_of(judgment: Judgment) -> Relation | None:
    """The relation in a checker's judgment; None, never NEUTRAL, where there is none."""
    return None if judgment.status is not Status.OK else Relation(judgment.label)


def statement(name: str, question: str, words: str) -> Evidence:
    """An answer as an item that claims are held against: the question and the words, so
    that a bare "red" tells of what; its doc_id is `name`.
    """
    return Evidence(doc_id=name, text=f"{question} {words}")
