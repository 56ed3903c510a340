"""Sheets with human labels in place of a checker's, and the pairs that are left to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from vrag_kit.analysis.claims import ClaimVerdicts, VerdictRow
from vrag_kit.errors import VragError
from vrag_kit.judging.claim_labels import ACCEPTED, ClaimPair, answer_as_evidence
from vrag_kit.judging.claims import EntailmentLabel
from vrag_kit.log import logger

Things = tuple[ClaimPair, ...]


@dataclass(frozen=True, slots=True)
class ClaimPairSheet:
    """The pairs of claim and evidence behind a sheet's verdicts, in its shapes."""

    accepted: Things
    recalled: Things  # empty for a silent answer, which recalls nothing
    on_claims: tuple[Things, ...]
    on_gold: tuple[Things, ...]

    @classmethod
    def from_verdicts(cls, sheet: ClaimVerdicts, words: str) -> ClaimPairSheet:
        """The pairs of the sheet of an answer with this text; "" where it is empty."""
        query_id, said = sheet.query_id, answer_as_evidence(words)
        gold = sheet.gold_claims if words else ()
        return cls(
            accepted=tuple(ClaimPair(query_id, claim, ACCEPTED) for claim in sheet.claims),
            recalled=tuple(ClaimPair(query_id, claim, said) for claim in gold),
            on_claims=tuple(_across(sheet, claim) for claim in sheet.claims),
            on_gold=tuple(_across(sheet, claim) for claim in sheet.gold_claims),
        )

    @property
    def things(self) -> Things:
        """All pairs, in order."""
        rows = (self.accepted, self.recalled, *self.on_claims, *self.on_gold)
        return tuple(chain.from_iterable(rows))


def pairs_to_label(sample: pd.DataFrame, *, column: str = "answer") -> list[ClaimPair]:
    """Lists the pairs that give every sheet of `sample` true labels, each claim and item once.
    Those of the first answer come first.

    `sample` has the columns sheet and `column`, the texts, as `annotation_sample` draws from a
    table of `check_answers`.
    """
    found: dict[ClaimPair, None] = {}
    for row in _rows(sample, column):
        found |= dict.fromkeys(ClaimPairSheet.from_verdicts(*row).things)
    return list(found)


def add_human_verdicts(
    sample: pd.DataFrame, labels: Mapping[ClaimPair, EntailmentLabel], *, column: str = "answer"
) -> pd.DataFrame:
    """Adds the column true_sheet to `sample`: its sheet with human labels, None where one of them
    is missing. Prints how many are complete.
    """
    known = iter([_relabelled(sheet, words, labels) for sheet, words in _rows(sample, column)])
    sheets = [next(known) if isinstance(each, ClaimVerdicts) else None for each in sample["sheet"]]
    whole = sum(each is not None for each in sheets)
    logger.info(f"labels: {whole:,} of {len(sheets):,} sheets have all of theirs")
    return sample.assign(true_sheet=pd.Series(sheets, index=sample.index, dtype=object))


def _across(sheet: ClaimVerdicts, claim: str) -> Things:
    return tuple(ClaimPair(sheet.query_id, claim, item.doc_id) for item in sheet.items)


def _rows(sample: pd.DataFrame, column: str) -> list[tuple[ClaimVerdicts, str]]:
    """(sheet, words) of the rows that have a sheet."""
    if lacking := [name for name in ("sheet", column) if name not in sample]:
        raise VragError(
            f"the sample has no column {lacking[0]!r}; draw it with `annotation_sample` from a"
            " table"
            " of `check_answers`."
        )
    rows = zip(sample["sheet"], sample[column], strict=True)
    kept = [(sheet, words) for sheet, words in rows if isinstance(sheet, ClaimVerdicts)]
    return [(sheet, words if isinstance(words, str) else "") for sheet, words in kept]


def _relabelled(
    sheet: ClaimVerdicts, words: str, labels: Mapping[ClaimPair, EntailmentLabel]
) -> ClaimVerdicts | None:
    held = ClaimPairSheet.from_verdicts(sheet, words)
    if any(thing not in labels for thing in held.things):
        return None

    def row(things: Things) -> VerdictRow:
        return tuple(labels[thing] for thing in things)

    return replace(
        sheet,
        accepted=row(held.accepted),
        recalled=row(held.recalled) if words else sheet.recalled,
        on_claims=tuple(map(row, held.on_claims)),
        on_gold=tuple(map(row, held.on_gold)),
    )
