"""`ClaimVerdicts`: an answer's claims, the evidence it was shown, and every verdict on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from vrag_kit.errors import VragError, short_repr
from vrag_kit.judging.claims import EntailmentLabel

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
