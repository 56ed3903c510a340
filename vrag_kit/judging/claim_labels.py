"""Read and write human labels of claims (CSV files)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.judging.claims import EntailmentLabel
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
