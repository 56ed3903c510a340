"""Claims, verdicts on them, and the protocols `ClaimExtractor` and `ClaimChecker`.

An answer is split into claims, and each claim is checked against each item of evidence. A language
model or rules can implement the two protocols; all metrics work with either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from vrag_kit.types import Document, Failure, QueryId


class EntailmentLabel(StrEnum):
    """Relation of a claim to an item of evidence."""

    ENTAILMENT = "ENTAILMENT"
    """The item shows that the claim is true."""
    NEUTRAL = "NEUTRAL"
    """The item does not settle whether the claim is true."""
    CONTRADICTION = "CONTRADICTION"
    """The item shows that the claim is false."""


Label = EntailmentLabel | None
"""A verdict; None where it is missing or unparsed, which is never NEUTRAL."""
VERDICT_SCORES: dict[Label, float] = {
    EntailmentLabel.ENTAILMENT: 1.0,
    EntailmentLabel.NEUTRAL: 0.0,
    EntailmentLabel.CONTRADICTION: -1.0,
    None: np.nan,
}
"""Label → its number in `ClaimVerdicts`."""
LABEL_NAMES = {VERDICT_SCORES[label]: label.value for label in EntailmentLabel}
"""Number in `ClaimVerdicts` → its label."""
UNPARSED = "unparsed"
"""The name of a missing verdict in tables."""
MODALITIES = ("image", "text")
ACCEPTED = "accepted answer"
"""The name of a query's accepted answers as evidence: they show whether a claim is correct."""
Claims = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerText:
    """A text to split into claims, and the question that it answers."""

    query_id: QueryId
    question: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntailmentRequest:
    """Claims to check against one item of evidence."""

    query_id: QueryId
    claims: Claims
    """At least one."""
    item: Document
    """An image, a passage, or an image with its caption, as the answerer saw it."""


class ClaimExtractor(Protocol):
    """Extracts the claims of texts."""

    name: str

    def extract(self, texts: Sequence[AnswerText]) -> list[Claims | Failure]:
        """Return for each text, in order, its claims or the reason why the extraction failed.
        Claims are one fact each, self-contained, without duplicates. A text without a fact, such as
        an abstention, has none.
        """


class ClaimChecker(Protocol):
    """Checks claims against items of evidence, from these items alone."""

    name: str
    fingerprint: str
    """Identifies the model that judges images, which may not be the answerer's.
    "" where no model does.
    """

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return for each request, in order, one label per claim; None where there is none."""


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One document that the answerer saw."""

    doc_id: str
    modality: str = "text"
    """"image" or "text"."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaimVerdicts:
    """The claims of one answer and of its reference, the evidence, and all verdicts on them.

    A verdict is 1 (ENTAILMENT), 0 (NEUTRAL), −1 (CONTRADICTION), or NaN where it is missing.
    """

    query_id: str
    claims: Claims
    """The n claims of the answer."""
    gold_claims: Claims
    """The m claims of the reference answer."""
    items: tuple[EvidenceItem, ...]
    """The p documents that the answerer saw, in its order."""
    verdicts: np.ndarray
    """Shape [n + m, 1 + p]: a row for each claim, then for each gold claim. The first column has
    the verdicts of the accepted answers on claims, and of the answer on gold claims; the others
    have those of the items.
    """

    @property
    def subject(self) -> tuple[object, ...]:
        """What the verdicts are about: query, claims, gold claims and items."""
        return self.query_id, self.claims, self.gold_claims, self.items

    @property
    def accepted(self) -> np.ndarray:
        """Shape [n]: the verdict of the accepted answers on each claim."""
        return self.verdicts[: len(self.claims), 0]

    @property
    def recalled(self) -> np.ndarray:
        """Shape [m]: the verdict of the answer on each gold claim."""
        return self.verdicts[len(self.claims) :, 0]

    @property
    def on_claims(self) -> np.ndarray:
        """Shape [n, p]: the verdict of each item on each claim."""
        return self.verdicts[: len(self.claims), 1:]

    @property
    def on_gold(self) -> np.ndarray:
        """Shape [m, p]: the verdict of each item on each gold claim."""
        return self.verdicts[len(self.claims) :, 1:]

    @property
    def n_missing(self) -> int:
        """The number of missing verdicts."""
        return int(np.isnan(self.verdicts).sum())

    def is_of(self, modality: str) -> np.ndarray:
        """Shape [p], bool: whether each item is of a modality; always true for "all"."""
        return np.array([modality in ("all", item.modality) for item in self.items], bool)

    def restrict_to_modality(self, modality: str) -> ClaimVerdicts:
        """Returns the same sheet with the items of one modality as the only evidence."""
        items = tuple(item for item in self.items if item.modality == modality)
        chosen = np.append(True, self.is_of(modality))
        return replace(self, items=items, verdicts=self.verdicts[:, chosen])

    def fill_missing(self, label: EntailmentLabel) -> ClaimVerdicts:
        """Returns the same sheet with this label in place of every missing verdict."""
        return replace(self, verdicts=np.nan_to_num(self.verdicts, nan=VERDICT_SCORES[label]))
