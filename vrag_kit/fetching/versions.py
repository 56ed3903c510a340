"""What changed from one version of Visual-RAG's annotations to the next.

And whether the newer one's own account of it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.json_lines import parse_object, read_lines
from vrag_kit.benchmarks.visual_rag_rows import (
    CHANGES_V2,
    KEYS,
    KEYS_V2,
    check_labels,
    no_rows,
)
from vrag_kit.errors import VragError
from vrag_kit.fetching.health import claim_problems
from vrag_kit.plain import JsonView

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
    claims: JsonView

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
    before, bad_before = _read(Path(v1))
    after, bad_after = _read(Path(v2))
    rows = [_change(*pair) for pair in _pairs(before, after)]
    rows += [_bad("line_v2", line, reason) for line, reason in bad_after.items()]
    rows += [_bad("line_v1", line, reason) for line, reason in bad_before.items()]
    return pd.DataFrame(rows).astype(dict.fromkeys(_NUMBERS, "Int64"))


def image_changes(v1: Path | str, v2: Path | str) -> pd.DataFrame:
    """The images behind `label_changes`, of queries in both versions; columns line_v1,
    line_v2, species, question, image, v1, v2.

    v1 and v2 are labels, 1 a clue and 0 none; missing where the image is not in the
    row. `question` is that of v2.
    """
    before, _ = _read(Path(v1))
    after, _ = _read(Path(v2))
    rows = []
    for old, new in _pairs(before, after):
        if old is None or new is None:
            continue
        query = (old.line, new.line, new.species, new.question)
        for name in dict.fromkeys([*old.images, *new.images]):
            labels = (old.images.get(name), new.images.get(name))
            if labels[0] != labels[1]:
                rows.append((*query, name, *labels))
    columns = ["line_v1", "line_v2", "species", "question", "image", "v1", "v2"]
    return pd.DataFrame(rows, columns=columns).astype({"v1": "Int64", "v2": "Int64"})


def changes_summary(changes: pd.DataFrame) -> str:
    """`label_changes` in two sentences, or three where there are bad rows."""
    bad = int((changes["change"] == _BAD).sum())
    changes = changes[changes["change"] != _BAD]
    whole = changes["change"].value_counts()
    both = changes[changes["line_v1"].notna() & changes["line_v2"].notna()]
    parts = both["change"].str.split(", ").explode().value_counts()
    sums = both[list(_COUNTS)].sum()
    lines = [
        f"{changes['line_v1'].count():,} queries in v1, {changes['line_v2'].count():,} in v2:"
        f" {whole.get('only in v1', 0):,} only in v1, {whole.get('only in v2', 0):,} only in v2,"
        f" {whole.get('same', 0):,} the same; another question in {parts.get('question', 0):,},"
        f" other answers in {parts.get('answers', 0):,},"
        f" other clues in {parts.get('clues', 0):,}"
        f" (+{sums['clues_added']:,} −{sums['clues_removed']:,}),"
        f" other images in {parts.get('images', 0):,}"
        f" (+{sums['images_added']:,} −{sums['images_removed']:,})."
    ]
    wrong = int((changes["disagrees"] != "").sum())
    verdict = f"differs from this in {wrong:,}." if wrong else "agrees with this."
    lines.append(f"What rows say of themselves (is_changed_v2, y_count, y_rate) {verdict}")
    if bad:
        lines.append(f"{bad:,} bad rows are in neither count, and compared with nothing.")
    return "\n".join(lines)


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
        raise no_rows(path)
    return rows, bad


def _row(text: str, where: str, number: int) -> _Row:
    row = parse_object(text, where, KEYS)
    for key, kind in _FIELDS.items():
        if not isinstance(row.get(key), kind):
            found = f"a {type(row[key]).__name__}" if key in row else "missing"
            raise VragError(f"{where}: {key!r} is {found}, expected a {kind.__name__}.")
    check_labels(row["images"], where)
    return _Row(
        line=number,
        species=row["sn"],
        question=row["question"],
        answers=tuple(map(str, row["answer"])),
        images=row["images"],
        claims={key: row[key] for key in KEYS_V2 if key in row},
    )


Pair = tuple[_Row | None, _Row | None]
"""A row before and after; one of them None where a query is in one version only."""


def _pairs(before: list[_Row], after: list[_Row]) -> list[Pair]:
    """Which row became which; every row once."""
    partner = _match(before, after, lambda row: (row.species, row.question))
    taken = set(partner.values())
    old_left = [row for row in before if row.line not in taken]
    new_left = [row for row in after if row.line not in partner]
    partner |= _match(old_left, new_left, lambda row: row.species, enough=0.5)
    taken = set(partner.values())
    old = {row.line: row for row in before}
    pairs: list[Pair] = [(old.get(partner.get(row.line, 0)), row) for row in after]
    pairs += [(row, None) for row in before if row.line not in taken]
    return pairs


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
        pairs = [pair for pair in product(olds, news) if _common_images(*pair) >= enough]
        taken: set[int] = set()
        for old, new in sorted(pairs, key=lambda pair: -_likeness(*pair)):
            if old.line not in taken and new.line not in partner:
                partner[new.line] = old.line
                taken.add(old.line)
    return partner


def _likeness(a: _Row, b: _Row) -> float:
    """How alike two rows are in words, clues, images and answers, each in [0, 1]."""
    words = SequenceMatcher(None, a.question, b.question, autojunk=False).ratio()
    clues = _share(a.clues(), b.clues())
    return words + clues + _common_images(a, b) + (a.answers == b.answers)


def _common_images(a: _Row, b: _Row) -> float:
    return _share(set(a.images), set(b.images))


def _share(a: set[str], b: set[str]) -> float:
    """What two sets have in common, of both together; 1 when both are empty."""
    return len(a & b) / len(a | b) if a | b else 1.0


def _change(before: _Row | None, after: _Row | None) -> dict[str, object]:
    """One row of `label_changes`."""
    row = next(row for row in (after, before) if row)
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
    is_now = "updated_image_label"
    if change == "same":
        is_now = "unchanged"
    elif {"question", "answers", "only in v2"} & set(change.split(", ")):
        is_now = "updated_qa"
    if says in CHANGES_V2 and says != is_now:
        problems.insert(0, f"is_changed_v2 is {says}, found {change}")
    return "; ".join(problems)
