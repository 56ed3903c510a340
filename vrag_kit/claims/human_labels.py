"""Read and write human labels of claims (CSV files)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd

from vrag_kit.claims.verdicts import ClaimVerdicts, EntailmentLabel, VerdictRow
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.tables import read_csv_rows, write_csv_rows

_COLUMNS = ["query_id", "claim", "item", "label", "annotator"]
ACCEPTED = "accepted answer"
"""The item for a query's accepted answers; claims are checked against it for correctness."""


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A claim and the item that it is checked against: the unit that gets a label."""

    query_id: str
    claim: str
    item: str
    """A doc_id; or `ACCEPTED`; or "answer: …", the text of an answer, for a gold claim."""


def answer_as_evidence(words: str) -> str:
    """Return the item name of an answer that gold claims are checked against."""
    return f"answer: {words}"


def read_claim_labels(path: Path | str, *, annotator: str = "") -> dict[ClaimPair, EntailmentLabel]:
    """Read labels of claims from a CSV file, one row per claim and item.
    Columns: query_id, claim, item, label (ENTAILMENT, NEUTRAL or CONTRADICTION), annotator.

    Raises `VragError` naming the line for a missing column, an unknown label, an empty cell, or a
    claim and item labelled twice. If `annotator` is given, it also does for a label by anybody
    else. Also raises it for a file that is missing or not UTF-8.
    """
    found: dict[ClaimPair, EntailmentLabel] = {}
    lines: dict[ClaimPair, str] = {}
    for where, by, held, label in _rows(Path(path)):
        if annotator and by != annotator:
            raise VragError(
                f"{where}: found a label of {by!r}, expected only those of"
                f" {annotator!r}. Choose another file: one for each annotator."
            )
        if held in lines:
            raise VragError(
                f"{where}: this claim has a label for {held.item!r} already, in {lines[held]};"
                " keep one of them, or a file for each annotator."
            )
        lines[held] = where.removeprefix(f"{path} ")
        found[held] = label
    return found


def read_annotator_labels(*paths: Path | str) -> dict[str, dict[ClaimPair, EntailmentLabel]]:
    """Return annotator → labels, from files that `read_claim_labels` can read.
    A file may hold one annotator, as the labelling panel writes it, or several.

    Raises `VragError` as it does, and naming the line where an annotator labels a claim and item
    twice.
    """
    found: dict[str, dict[ClaimPair, EntailmentLabel]] = {}
    for path in paths:
        for where, annotator, held, label in _rows(Path(path)):
            own = found.setdefault(annotator, {})
            if held in own:
                raise VragError(
                    f"{where}: {annotator!r} has labelled this claim for {held.item!r} already;"
                    " keep one of the two labels."
                )
            own[held] = label
    return found


def write_claim_labels(
    path: Path | str, labels: Mapping[ClaimPair, EntailmentLabel], *, annotator: str
) -> None:
    """Write labels in the format of `read_claim_labels`; raises `OSError` when it fails.
    An existing file is replaced only once the new one is complete.
    """
    rows = [
        (held.query_id, held.claim, held.item, label.value, annotator)
        for held, label in labels.items()
    ]
    write_csv_rows(Path(path), _COLUMNS, rows)


def _rows(path: Path) -> Iterator[tuple[str, str, ClaimPair, EntailmentLabel]]:
    """(file and line, annotator, what is labelled, label) of each row."""
    hint = "Write some with `label_claims`, or name another file in `labelling`."
    for number, row in read_csv_rows(path, _COLUMNS, "labels", hint):
        where = f"{path} line {number}"
        for name in _COLUMNS:
            if not row[name]:
                raise VragError(f"{where}: the {name} is empty; expected words.")
        if row["label"] not in list(EntailmentLabel):
            raise VragError(
                f"{where}: found the label {row['label']!r}, expected one of"
                f" {', '.join(EntailmentLabel)}."
            )
        held = ClaimPair(row["query_id"], row["claim"], row["item"])
        yield where, row["annotator"], held, EntailmentLabel(row["label"])


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
    for row in _sheets(sample, column):
        found |= dict.fromkeys(ClaimPairSheet.from_verdicts(*row).things)
    return list(found)


def add_human_verdicts(
    sample: pd.DataFrame, labels: Mapping[ClaimPair, EntailmentLabel], *, column: str = "answer"
) -> pd.DataFrame:
    """Adds the column true_sheet to `sample`: its sheet with human labels, None where one of them
    is missing. Prints how many are complete.
    """
    known = iter([_relabelled(sheet, words, labels) for sheet, words in _sheets(sample, column)])
    sheets = [next(known) if isinstance(each, ClaimVerdicts) else None for each in sample["sheet"]]
    whole = sum(each is not None for each in sheets)
    logger.info(f"labels: {whole:,} of {len(sheets):,} sheets have all of theirs")
    return sample.assign(true_sheet=pd.Series(sheets, index=sample.index, dtype=object))


def _across(sheet: ClaimVerdicts, claim: str) -> Things:
    return tuple(ClaimPair(sheet.query_id, claim, item.doc_id) for item in sheet.items)


def _sheets(sample: pd.DataFrame, column: str) -> list[tuple[ClaimVerdicts, str]]:
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
