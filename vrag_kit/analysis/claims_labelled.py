"""Sheets with people's labels in the place of a checker's, and what is left to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from vrag_kit.analysis.claims import ClaimSheet, Row
from vrag_kit.errors import VragError
from vrag_kit.judging.claim_labels import ACCEPTED, Held, answer_item
from vrag_kit.judging.claims import Relation

Things = tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class HeldSheet:
    """What a sheet's verdicts are about, in its shapes."""

    accepted: Things
    recalled: Things  # empty for a silent answer, which recalls nothing
    on_claims: tuple[Things, ...]
    on_gold: tuple[Things, ...]

    @classmethod
    def of(cls, sheet: ClaimSheet, words: str) -> HeldSheet:
        """Of the sheet of an answer of these words; "" where the model was silent."""
        query_id, said = sheet.query_id, answer_item(words)
        gold = sheet.gold_claims if words else ()
        return cls(
            accepted=tuple(Held(query_id, claim, ACCEPTED) for claim in sheet.claims),
            recalled=tuple(Held(query_id, claim, said) for claim in gold),
            on_claims=tuple(_across(sheet, claim) for claim in sheet.claims),
            on_gold=tuple(_across(sheet, claim) for claim in sheet.gold_claims),
        )

    @property
    def things(self) -> Things:
        """All of them, in order."""
        rows = (self.accepted, self.recalled, *self.on_claims, *self.on_gold)
        return tuple(chain.from_iterable(rows))


def to_label(sample: pd.DataFrame, *, column: str = "answer") -> list[Held]:
    """What people label so that every sheet of `sample` has true labels, each claim and
    item once: items of the first answer's sheet first.

    `sample` has the columns sheet and `column`, the words, as `sample_to_label` draws
    from a table of `with_claims`.
    """
    found: dict[Held, None] = {}
    for row in _rows(sample, column):
        found |= dict.fromkeys(HeldSheet.of(*row).things)
    return list(found)


def with_true_sheets(
    sample: pd.DataFrame, labels: Mapping[Held, Relation], *, column: str = "answer"
) -> pd.DataFrame:
    """`sample` with the column true_sheet: its sheet with people's labels, None where one
    of its verdicts has none. Prints how many are complete.
    """
    known = iter([_relabelled(sheet, words, labels) for sheet, words in _rows(sample, column)])
    sheets = [next(known) if isinstance(each, ClaimSheet) else None for each in sample["sheet"]]
    whole = sum(each is not None for each in sheets)
    print(f"labels: {whole:,} of {len(sheets):,} sheets have all of theirs", flush=True)
    return sample.assign(true_sheet=pd.Series(sheets, index=sample.index, dtype=object))


def _across(sheet: ClaimSheet, claim: str) -> Things:
    return tuple(Held(sheet.query_id, claim, item.doc_id) for item in sheet.items)


def _rows(sample: pd.DataFrame, column: str) -> list[tuple[ClaimSheet, str]]:
    """(sheet, words) of the rows that have a sheet."""
    if lacking := [name for name in ("sheet", column) if name not in sample]:
        raise VragError(
            f"the sample has no column {lacking[0]!r}; draw it with `sample_to_label` from a table"
            " of `with_claims`."
        )
    rows = zip(sample["sheet"], sample[column], strict=True)
    kept = [(sheet, words) for sheet, words in rows if isinstance(sheet, ClaimSheet)]
    return [(sheet, words if isinstance(words, str) else "") for sheet, words in kept]


def _relabelled(
    sheet: ClaimSheet, words: str, labels: Mapping[Held, Relation]
) -> ClaimSheet | None:
    held = HeldSheet.of(sheet, words)
    if any(thing not in labels for thing in held.things):
        return None

    def row(things: Things) -> Row:
        return tuple(labels[thing] for thing in things)

    return replace(
        sheet,
        accepted=row(held.accepted),
        recalled=row(held.recalled) if words else sheet.recalled,
        on_claims=tuple(map(row, held.on_claims)),
        on_gold=tuple(map(row, held.on_gold)),
    )
