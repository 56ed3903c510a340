"""Protocols for extracting and checking claims: `ClaimExtractor` and `ClaimChecker`.

An answer is split into claims, and each claim is checked against each item of evidence. A language
model or rules can implement the two protocols; all metrics of `vrag_kit.claims.verdicts` work with
either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Protocol

from vrag_kit.errors import VragError, short_repr
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


Label = EntailmentLabel | None
"""A verdict; None where it is missing or unparsed, which is never NEUTRAL."""
VerdictRow = tuple[Label, ...]
MODALITIES = ("image", "text")


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One document that the answerer saw."""

    doc_id: str
    modality: str = "text"
    """"image" or "text"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdicts:
    """The claims of one answer and of its reference, the evidence, and all verdicts on them."""

    query_id: str
    claims: tuple[str, ...]
    """The n claims of the answer."""
    gold_claims: tuple[str, ...]
    """The m claims of the reference answer."""
    items: tuple[EvidenceItem, ...]
    """The p documents that the answerer saw, in its order."""
    accepted: VerdictRow
    """Shape [n]: the verdict of the accepted answers on each claim."""
    recalled: VerdictRow
    """Shape [m]: the verdict of the answer on each gold claim."""
    on_claims: tuple[VerdictRow, ...]
    """Shape [n][p]: the verdict of each item on each claim."""
    on_gold: tuple[VerdictRow, ...]
    """Shape [m][p]: the verdict of each item on each gold claim."""

    def __post_init__(self) -> None:
        """Raises `VragError`, which names query and matrix, for a wrong shape, an
        unknown label, modality or an empty claim.
        """
        for name in ("claims", "gold_claims"):
            self._check_claims(name)
        for item in self.items:
            if item.modality not in MODALITIES:
                raise VragError(
                    f"{self._where('items')}, {item.doc_id!r}: found the modality"
                    f" {short_repr(item.modality)}, expected {' or '.join(MODALITIES)}."
                )
        self._check_row("accepted", self.accepted, len(self.claims), "claims")
        self._check_row("recalled", self.recalled, len(self.gold_claims), "gold claims")
        self._check_rows("on_claims", self.on_claims, len(self.claims), "claims")
        self._check_rows("on_gold", self.on_gold, len(self.gold_claims), "gold claims")

    @property
    def verdicts(self) -> VerdictRow:
        """The verdicts of all four matrices, in their order and row by row."""
        rows = (self.accepted, self.recalled, *self.on_claims, *self.on_gold)
        return tuple(chain.from_iterable(rows))

    @property
    def unread(self) -> int:
        """The number of missing verdicts."""
        return self.verdicts.count(None)

    def n_missing(self, matrix: str) -> int:
        """The number of missing verdicts in one matrix, such as "on_gold"."""
        rows = getattr(self, matrix)
        rows = (rows,) if matrix in ("accepted", "recalled") else rows
        return sum(row.count(None) for row in rows)

    def item_positions(self, modality: str) -> tuple[int, ...]:
        """The positions, from 0, of the items of a modality; those of all items for "all"."""
        known = enumerate(self.items)
        return tuple(place for place, item in known if modality in ("all", item.modality))

    def restrict_to_modality(self, modality: str) -> ClaimVerdicts:
        """Returns the same sheet with the items of one modality as the only evidence."""
        places = self.item_positions(modality)
        return replace(
            self,
            items=tuple(self.items[place] for place in places),
            on_claims=tuple(tuple(row[place] for place in places) for row in self.on_claims),
            on_gold=tuple(tuple(row[place] for place in places) for row in self.on_gold),
        )

    def fill_missing(self, relation: EntailmentLabel) -> ClaimVerdicts:
        """Returns the same sheet with this label in place of every missing verdict."""

        def row(labels: VerdictRow) -> VerdictRow:
            return tuple(relation if label is None else label for label in labels)

        return replace(
            self,
            accepted=row(self.accepted),
            recalled=row(self.recalled),
            on_claims=tuple(map(row, self.on_claims)),
            on_gold=tuple(map(row, self.on_gold)),
        )

    def __repr__(self) -> str:
        return (
            f"ClaimVerdicts({self.query_id!r}, {len(self.claims)} claims, {len(self.gold_claims)}"
            f" gold claims, {len(self.items)} items, {self.unread} verdicts missing)"
        )

    def _where(self, matrix: str) -> str:
        return f"claims of query {self.query_id!r}, {matrix}"

    def _check_claims(self, name: str) -> None:
        for number, claim in enumerate(getattr(self, name), start=1):
            if not isinstance(claim, str) or not claim.strip():
                raise VragError(
                    f"{self._where(name)}, number {number}: found {short_repr(claim)}, expected"
                    " words."
                    " Leave an empty claim out, with its row of every matrix."
                )

    def _check_rows(self, name: str, rows: Sequence[VerdictRow], length: int, what: str) -> None:
        if len(rows) != length:
            raise VragError(
                f"{self._where(name)}: found {len(rows)} rows, expected one for each of {length}"
                f" {what}."
            )
        for number, row in enumerate(rows, start=1):
            self._check_row(f"{name} row {number}", row, len(self.items), "items")

    def _check_row(self, name: str, row: VerdictRow, length: int, what: str) -> None:
        if len(row) != length:
            raise VragError(
                f"{self._where(name)}: found {len(row)} labels, expected one for each of {length}"
                f" {what}."
            )
        for label in row:
            if label is not None and not isinstance(label, EntailmentLabel):
                raise VragError(
                    f"{self._where(name)}: found the label {short_repr(label)}, expected a"
                    " `EntailmentLabel`"
                    f" ({', '.join(EntailmentLabel)}), or None where it could not be read."
                )
