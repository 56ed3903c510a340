"""People's labels of verdicts on claims, as a file holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.judging.claims import Relation
from vrag_kit.tables import read_rows, write_rows

COLUMNS = ["query_id", "claim", "item", "label", "labeller"]
ACCEPTED = "accepted answer"
"""The item that claims of an answer are held against to see whether they are right."""


@dataclass(frozen=True, slots=True)
class Held:
    """A claim held against an item: what gets a label."""

    query_id: str
    claim: str
    item: str
    """A doc_id; or `ACCEPTED`; or "answer: …", an answer's words, for a gold claim."""


def answer_item(words: str) -> str:
    """The item that an answer is to gold claims."""
    return f"answer: {words}"


def read_claim_labels(path: Path | str, *, labeller: str = "") -> dict[Held, Relation]:
    """The labels in a CSV file: query_id, claim, item, label (ENTAILMENT, NEUTRAL or
    CONTRADICTION), labeller; one row for each claim and item.

    Raises `VragError` naming the line for a missing column, an unknown label, an empty
    cell, a claim and item labelled twice, and, where `labeller` is given, a label of
    somebody else; and for a file that is missing or not UTF-8.
    """
    found: dict[Held, Relation] = {}
    lines: dict[Held, str] = {}
    for where, by, held, label in _rows(Path(path)):
        if labeller and by != labeller:
            raise VragError(
                f"{where}: found a label of {by!r}, expected only those of"
                f" {labeller!r}. Choose another file: one for each labeller."
            )
        if held in lines:
            raise VragError(
                f"{where}: this claim has a label for {held.item!r} already, in {lines[held]};"
                " keep one of them, or a file for each labeller."
            )
        lines[held] = where.removeprefix(f"{path} ")
        found[held] = label
    return found


def read_annotators(*paths: Path | str) -> dict[str, dict[Held, Relation]]:
    """Labeller → their labels, from files that `read_claim_labels` reads: a file each, as
    the labelling panel writes them, or several people in one.

    Raises `VragError` as it does, and naming the line where one person labels a claim
    and item twice.
    """
    found: dict[str, dict[Held, Relation]] = {}
    for path in paths:
        for where, labeller, held, label in _rows(Path(path)):
            own = found.setdefault(labeller, {})
            if held in own:
                raise VragError(
                    f"{where}: {labeller!r} has labelled this claim for {held.item!r} already;"
                    " keep one of the two labels."
                )
            own[held] = label
    return found


def write_claim_labels(path: Path | str, labels: Mapping[Held, Relation], *, labeller: str) -> None:
    """Write labels as `read_claim_labels` reads them, replacing a file only once the new
    one is complete. Raises `OSError` when it cannot be written.
    """
    rows = [
        (held.query_id, held.claim, held.item, label.value, labeller)
        for held, label in labels.items()
    ]
    write_rows(Path(path), COLUMNS, rows)


def _rows(path: Path) -> Iterator[tuple[str, str, Held, Relation]]:
    """(file and line, labeller, what is labelled, label) of each row."""
    hint = "Write some with `label_claims`, or name another file in `labelling`."
    for number, row in read_rows(path, COLUMNS, "labels", hint):
        where = f"{path} line {number}"
        for name in COLUMNS:
            if not row[name]:
                raise VragError(f"{where}: the {name} is empty; expected words.")
        if row["label"] not in list(Relation):
            raise VragError(
                f"{where}: found the label {row['label']!r}, expected one of {', '.join(Relation)}."
            )
        held = Held(row["query_id"], row["claim"], row["item"])
        yield where, row["labeller"], held, Relation(row["label"])
