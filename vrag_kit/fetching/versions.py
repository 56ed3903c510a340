"""What changed between two versions of a benchmark's annotations, and whether the newer
one's own account of it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.visual_rag_rows import (
    CHANGES_V2,
    KEYS_V2,
    check_labels,
    parse_object,
    read_lines,
)
from vrag_kit.errors import VragError
from vrag_kit.fetching.health import claim_problems

_FIELDS = {"question": str, "sn": str, "images": dict, "answer": list}
_COUNTS = ("clues_added", "clues_removed", "images_added", "images_removed")
_BAD = "bad row"
_NUMBERS = ("clues_v1", "clues_v2", *_COUNTS, "line_v1", "line_v2")


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of annotations; only its shape is checked, so that a version with faults
    can be compared too.
    """

    line: int
    species: str
    question: str
    answers: tuple[str, ...]
    images: Mapping[str, int]
    claims: Mapping[str, Any]

    def clues(self) -> set[str]:
        return {name for name, label in self.images.items() if label == 1}


def label_changes(v1: Path | str, v2: Path | str) -> pd.DataFrame:
    """What became of every query from one annotation file to the next; one row a query,
    in the order of `v2`, then what is only in `v1`, then bad rows.

    Columns: change; species; question_v1, question_v2; answers_v1, answers_v2 (tuples);
    clues_v1, clues_v2 (counts); clues_added (0 → 1) and clues_removed (1 → 0) among the
    images in both; images_added, images_removed; line_v1, line_v2; says, the row's own
    `is_changed_v2`; disagrees, what its `is_changed_v2`, `y_count` or `y_rate` say
    other than what is found ("" when nothing). Where a query is in one version only,
    the texts of the other are empty, its numbers missing, and the four changes 0.

    `change` is "only in v1", "only in v2", "same", or which of question, answers,
    clues, images differ. A query is the same one when species and question are; of
    repeated ones, those most alike in clues, images and answers go together. What is
    left goes together as "question" when the species and at least half of the images
    are the same, most alike first: that it is the same question in other words is for
    the reader to see, so both texts are there. A row's own claim is `updated_qa` when
    question or answers changed, else `updated_image_label` when images or labels did,
    else `unchanged`.

    A row that is not JSON, has no question, species, images or answers at all, or a
    label other than 0 and 1, is compared with nothing: its `change` is "bad row", and
    `disagrees` says why. Other faults, such as no clue, are let through. Raises
    `VragError` for a file that cannot be read or has no rows.
    """
    (before, bad_before), (after, bad_after) = _read(Path(v1)), _read(Path(v2))
    rows = [_change(*pair) for pair in _pairs(before, after)]
    rows += [
        _bad(side, line, reason)
        for side, bad in (("line_v2", bad_after), ("line_v1", bad_before))
        for line, reason in bad.items()
    ]
    return pd.DataFrame(rows).astype(dict.fromkeys(_NUMBERS, "Int64"))


def image_changes(v1: Path | str, v2: Path | str) -> pd.DataFrame:
    """The images behind `label_changes`, of queries in both versions; columns line_v1,
    line_v2, species, question, image, v1, v2.

    v1 and v2 are labels, 1 a clue and 0 none; missing where the image is not in the
    row. `question` is that of v2.
    """
    rows = [
        (
            before.line,
            after.line,
            after.species,
            after.question,
            name,
            before.images.get(name),
            after.images.get(name),
        )
        for before, after in _pairs(_read(Path(v1))[0], _read(Path(v2))[0])
        if before and after
        for name in dict.fromkeys([*before.images, *after.images])
        if before.images.get(name) != after.images.get(name)
    ]
    return pd.DataFrame(
        rows, columns=["line_v1", "line_v2", "species", "question", "image", "v1", "v2"]
    ).astype({"v1": "Int64", "v2": "Int64"})


def changes_summary(changes: pd.DataFrame) -> str:
    """`label_changes` in two sentences, or three where there are bad rows."""
    bad, changes = int((changes["change"] == _BAD).sum()), changes[changes["change"] != _BAD]
    both = changes[changes["line_v1"].notna() & changes["line_v2"].notna()]
    kinds = both["change"].str.split(", ")
    question, answers, clues, images = (
        int(kinds.map(lambda found, kind=kind: kind in found).sum())
        for kind in ("question", "answers", "clues", "images")
    )
    sums = both[list(_COUNTS)].sum()
    wrong = int((changes["disagrees"] != "").sum())
    gone, new, same = (
        int((changes["change"] == kind).sum()) for kind in ("only in v1", "only in v2", "same")
    )
    return (
        f"{changes['line_v1'].count():,} queries in v1, {changes['line_v2'].count():,} in v2:"
        f" {gone:,} only in v1, {new:,} only in v2, {same:,} the same; another question in"
        f" {question:,}, other answers in {answers:,}, other clues in {clues:,}"
        f" (+{sums['clues_added']:,} −{sums['clues_removed']:,}), other images in {images:,}"
        f" (+{sums['images_added']:,} −{sums['images_removed']:,}).\n"
        + (
            "What rows say of themselves (is_changed_v2, y_count, y_rate) differs from this in"
            f" {wrong:,}."
            if wrong
            else "What rows say of themselves (is_changed_v2, y_count, y_rate) agrees with this."
        )
        + (f"\n{bad:,} bad rows are in neither count, and compared with nothing." if bad else "")
    )


def _read(path: Path) -> tuple[list[_Row], dict[int, str]]:
    """(rows that can be compared, line of each other one → why not)."""
    rows: list[_Row] = []
    bad: dict[int, str] = {}
    for where, line in read_lines(path):
        number = int(where.rpartition(" ")[2])
        try:
            rows.append(_row(line, where, number))
        except VragError as error:
            bad[number] = str(error).removeprefix(f"{where}: ")
    if not rows and not bad:
        raise VragError(
            f"{path}: no queries found, expected one JSON object a line. Check that this is an"
            " annotation file."
        )
    return rows, bad


def _row(text: str, where: str, number: int) -> _Row:
    row = parse_object(text, where)
    for key, kind in _FIELDS.items():
        if not isinstance(row.get(key), kind):
            raise VragError(
                f"{where}: {key!r} is"
                f" {'missing' if key not in row else f'a {type(row[key]).__name__}'}, expected a"
                f" {kind.__name__}."
            )
    check_labels(row["images"], where)
    return _Row(
        line=number,
        species=row["sn"],
        question=row["question"],
        answers=tuple(map(str, row["answer"])),
        images=row["images"],
        claims={key: row[key] for key in KEYS_V2 if key in row},
    )


def _pairs(before: list[_Row], after: list[_Row]) -> list[tuple[_Row | None, _Row | None]]:
    """Which row became which; every row once."""
    partner = _match(before, after, lambda row: (row.species, row.question))
    taken = set(partner.values())
    left = [row for row in before if row.line not in taken]
    partner |= _match(
        left, [row for row in after if row.line not in partner], lambda row: row.species, enough=0.5
    )
    old, taken = {row.line: row for row in before}, set(partner.values())
    return [
        *((old.get(partner.get(row.line, 0)), row) for row in after),
        *((row, None) for row in before if row.line not in taken),
    ]


def _match(
    before: Iterable[_Row],
    after: Iterable[_Row],
    key: Callable[[_Row], Hashable],
    enough: float = 0.0,
) -> dict[int, int]:
    """Line after → line before, among rows with the same key and `enough` images in
    common: the most alike first, of equals the earlier.
    """
    groups: dict[Hashable, tuple[list[_Row], list[_Row]]] = {}
    for side, rows in enumerate((before, after)):
        for row in rows:
            groups.setdefault(key(row), ([], []))[side].append(row)
    partner: dict[int, int] = {}
    for olds, news in groups.values():
        pairs = [
            (old, new)
            for old, new in product(olds, news)
            if _share(set(old.images), set(new.images)) >= enough
        ]
        taken: set[int] = set()
        for old, new in sorted(pairs, key=lambda pair: -_likeness(*pair)):
            if old.line not in taken and new.line not in partner:
                partner[new.line] = old.line
                taken.add(old.line)
    return partner


def _likeness(a: _Row, b: _Row) -> float:
    """How alike two rows are in words, clues, images and answers, each in [0, 1]."""
    words = SequenceMatcher(None, a.question, b.question, autojunk=False).ratio()
    return (
        words
        + _share(a.clues(), b.clues())
        + _share(set(a.images), set(b.images))
        + (a.answers == b.answers)
    )


def _share(a: set[str], b: set[str]) -> float:
    """What two sets have in common, of both together; 1 when both are empty."""
    return len(a & b) / len(a | b) if a | b else 1.0


def _change(before: _Row | None, after: _Row | None) -> dict[str, object]:
    """One row of `label_changes`."""
    row = after or before
    counts = dict.fromkeys(_COUNTS, 0)
    if before and after:
        both = before.images.keys() & after.images.keys()
        counts = {
            "clues_added": len(both & (after.clues() - before.clues())),
            "clues_removed": len(both & (before.clues() - after.clues())),
            "images_added": len(after.images.keys() - both),
            "images_removed": len(before.images.keys() - both),
        }
    change = _kind(before, after, counts)
    sides = {
        "question_v1": before.question if before else "",
        "question_v2": after.question if after else "",
        "answers_v1": before.answers if before else (),
        "answers_v2": after.answers if after else (),
        "clues_v1": len(before.clues()) if before else None,
        "clues_v2": len(after.clues()) if after else None,
    }
    return {
        "change": change,
        "species": row.species,
        **sides,
        **counts,
        "line_v1": before and before.line,
        "line_v2": after and after.line,
        "says": after.claims.get("is_changed_v2", "") if after else "",
        "disagrees": _disagreement(after, change) if after else "",
    }


def _bad(side: str, line: int, reason: str) -> dict[str, object]:
    """The row of `label_changes` for one that cannot be compared."""
    texts = {
        "change": _BAD,
        "species": "",
        "question_v1": "",
        "question_v2": "",
        "answers_v1": (),
        "answers_v2": (),
        "says": "",
        "disagrees": reason,
    }
    return {**dict.fromkeys(_NUMBERS), **dict.fromkeys(_COUNTS, 0), **texts, side: line}


def _kind(before: _Row | None, after: _Row | None, counts: Mapping[str, int]) -> str:
    if not before or not after:
        return "only in v1" if before else "only in v2"
    found = {
        "question": before.question != after.question,
        "answers": before.answers != after.answers,
        "clues": counts["clues_added"] + counts["clues_removed"],
        "images": counts["images_added"] + counts["images_removed"],
    }
    return ", ".join(name for name, changed in found.items() if changed) or "same"


def _disagreement(row: _Row, change: str) -> str:
    """What a row says of itself other than what was found."""
    problems = claim_problems(row.images, row.claims)
    says = row.claims.get("is_changed_v2")
    is_now = {"same": "unchanged", "only in v2": "updated_qa"}.get(
        change,
        (
            "updated_qa"
            if {"question", "answers"} & set(change.split(", "))
            else "updated_image_label"
        ),
    )
    if says in CHANGES_V2 and says != is_now:
        problems.insert(0, f"is_changed_v2 is {says}, found {change}")
    return "; ".join(problems)
