"""Protocols for extracting and checking claims: `ClaimExtractor` and `ClaimChecker`.

An answer is split into claims, and each claim is checked against each item of evidence. A language
model or rules can implement the two protocols; all metrics of `vrag_kit.analysis.claims` work with
either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from vrag_kit.types import Document, Failure, Judgment, QueryId, Status


class EntailmentLabel(StrEnum):
    """Relation of a claim to an item of evidence."""

    ENTAILMENT = "ENTAILMENT"
    """The item shows that the claim is true."""
    NEUTRAL = "NEUTRAL"
    """The item does not settle whether the claim is true."""
    CONTRADICTION = "CONTRADICTION"
    """The item shows that the claim is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerText:
    """A text to split into claims, and the question that it answers."""

    query_id: QueryId
    question: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimExtraction:
    """The claims of a text, or the reason why the extraction failed."""

    claims: tuple[str, ...] = ()
    """One fact each, self-contained; without duplicates, none empty."""
    raw: str | None = None
    """The extractor's raw reply; None when the call failed."""
    failure: Failure | None = None
    """Why the extraction failed; None where it succeeded, even without a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntailmentRequest:
    """Claims to check against one item of evidence."""

    query_id: QueryId
    claims: tuple[str, ...]
    """At least one."""
    item: Document
    """An image, a passage, or an image with its caption, as the answerer saw it."""


class ClaimExtractor(Protocol):
    """Extracts the claims of texts."""

    name: str

    def extract(self, texts: Sequence[AnswerText]) -> list[ClaimExtraction]:
        """Return the claims of each text, in order.
        A text without a fact, such as an abstention, has none.
        """


class ClaimChecker(Protocol):
    """Checks claims against items of evidence, from these items alone."""

    name: str
    fingerprint: str
    """Identifies the model that judges images, which may not be the answerer's.
    "" where no model does.
    """

    def check(self, checkings: Sequence[EntailmentRequest]) -> list[tuple[Judgment, ...]]:
        """Return for each request one judgment per claim, in order.
        `verdict` and `failed_verdict` build them.
        """


def verdict(
    claim: str, item: Document, relation: EntailmentLabel, raw: str | None = None
) -> Judgment:
    """Return the judgment that `item` has this relation to a claim.
    `Judgment.label` is the relation; score is 1, 0 or −1; target is (claim, doc_id).
    """
    scores = {
        EntailmentLabel.ENTAILMENT: 1.0,
        EntailmentLabel.NEUTRAL: 0.0,
        EntailmentLabel.CONTRADICTION: -1.0,
    }
    return Judgment(
        answer_id="",
        target=(claim, item.doc_id),
        label=relation.value,
        score=scores[relation],
        raw=raw,
    )


def failed_verdict(
    claim: str, item: Document, failure: Failure, raw: str | None = None
) -> Judgment:
    """Return a judgment without label and score, for a failed or unparsed reply."""
    target = (claim, item.doc_id)
    return Judgment(answer_id="", target=target, label="", score=None, raw=raw, failure=failure)


def entailment_label(judgment: Judgment) -> EntailmentLabel | None:
    """Return the relation in a checker's judgment; None, never NEUTRAL, for a failed one."""
    return None if judgment.status is not Status.OK else EntailmentLabel(judgment.label)


def answer_document(name: str, question: str, words: str) -> Document:
    """Return an answer as a document that claims can be checked against.
    Its text is question and answer, which gives a bare "red" its context; its doc_id is `name`.
    """
    return Document(doc_id=name, text=f"{question} {words}")
