"""`vrag check` of a benchmark: what was found, as a terminal shows it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.fetching.data_folder import find_data
from vrag_kit.fetching.health import KINDS, check_visual_rag
from vrag_kit.fetching.versions import changes_summary, image_changes, label_changes
from vrag_kit.files import write_file

MOST_ROWS = 50
"""Rows of a table that are printed; `--csv` writes all."""

_NAMES = {"row": "bad rows", "missing": "missing", "damaged": "damaged", "odd": "odd"}


def check_data(
    target: Path, image_root: Path | None, *, before: Path | None = None, csv: Path | None = None
) -> bool:
    """Print what is wrong with a benchmark's files, and what changed since `before`;
    whether there are faults (odd findings are none).

    `target` is an annotation file with its `image_root`, or, alone, a folder that
    `find_data` understands. `csv` gets every finding; what changed goes beside it, by
    query to "<name>_changes.csv", by image to "<name>_image_changes.csv".
    """
    if image_root is None and not target.is_dir():
        raise VragError(
            f"{target} is no parameter file (.yaml) and no folder. To check a benchmark, name its"
            f" images too: `vrag check {target} <image folder>`."
        )
    annotations = target
    if image_root is None:
        found = find_data(target)
        annotations, image_root, before = (
            found.annotations,
            found.image_root,
            before or found.before,
        )
    if before and not before.is_file():
        raise VragError(
            f"{before}: no such annotation file. `--before` takes the older one (JSON Lines)."
        )
    print(
        f"annotations: {annotations}\nimages: {image_root}"
        + (f"\nolder annotations: {before} (compared, not checked)" if before else ""),
        flush=True,
    )
    findings = check_visual_rag(annotations, image_root)
    print(_summary(findings))
    _show(findings, csv)
    if before:
        changes = label_changes(before, annotations)
        print(f"\n{changes_summary(changes)}")
        _show(_in_short(changes), csv and csv.with_name(f"{csv.stem}_changes.csv"), changes)
        if csv:
            _write(
                csv.with_name(f"{csv.stem}_image_changes.csv"), image_changes(before, annotations)
            )
    return bool(set(findings["kind"]) - {"odd"})


def _summary(findings: pd.DataFrame, most: int = 5) -> str:
    """Counts by kind, and of what is odd, by what it is."""
    kinds, odd = (
        findings["kind"].value_counts(),
        findings.loc[findings["kind"] == "odd", "found"].value_counts(),
    )
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in odd.head(most).items()) + (
        ", …" if len(odd) > most else ""
    )
    return ", ".join(f"{_NAMES[kind]}: {kinds.get(kind, 0):,}" for kind in KINDS) + (
        f"\nodd are: {_plain(reasons)}" if reasons else ""
    )


def _show(table: pd.DataFrame, csv: Path | None, whole: pd.DataFrame | None = None) -> None:
    """Print the first rows, and write all of them (or the `whole` they stand for)."""
    if not table.empty:
        print("\n".join(_lines(table.head(MOST_ROWS))))
    if len(table) > MOST_ROWS:
        print(f"… and {len(table) - MOST_ROWS:,} more" + ("" if csv else "; --csv FILE writes all"))
    if csv:
        _write(csv, table if whole is None else whole)


def _write(csv: Path, table: pd.DataFrame) -> None:
    write_file(csv, table.to_csv(index=False))
    print(f"written to {csv}")


def _lines(table: pd.DataFrame, widest: int = 64) -> list[str]:
    """The table in columns; all but the last are padded, and cut in front when very
    long, for what tells names apart stands at their ends.
    """
    rows = [
        list(table.columns),
        *([_plain(cell) for cell in row] for row in table.itertuples(index=False)),
    ]
    cut = [
        [*(cell if len(cell) <= widest else f"…{cell[1 - widest :]}" for cell in row[:-1]), row[-1]]
        for row in rows
    ]
    widths = [
        *(max(map(len, column)) for column in zip(*(row[:-1] for row in cut), strict=True)),
        0,
    ]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cut
    ]


def _plain(cell: object) -> str:
    """A cell as text that cannot move the cursor."""
    text = "" if cell is None or cell is pd.NA else str(cell)
    return "".join(character if character.isprintable() else "�" for character in text)


def _in_short(changes: pd.DataFrame) -> pd.DataFrame:
    """What changed, or is claimed to have, in few columns: lines of both files,
    changes, what the row says wrongly of itself, and the texts.
    """
    seen = changes[(changes["change"] != "same") | (changes["disagrees"] != "")]
    signs = {
        "clues": ("clues_added", "clues_removed"),
        "images": ("images_added", "images_removed"),
    }

    def change(row: pd.Series) -> str:
        return ", ".join(
            f"{name} +{row[signs[name][0]]} −{row[signs[name][1]]}" if name in signs else name
            for name in row["change"].split(", ")
        )

    def texts(row: pd.Series) -> str:
        question = row["question_v2"] or row["question_v1"]
        parts = [
            (
                f"{row['question_v1']} → {question}"
                if "question" in row["change"].split(", ")
                else question
            )
        ]
        if "answers" in row["change"].split(", "):
            parts.append(f"[{' | '.join(row['answers_v1'])} → {' | '.join(row['answers_v2'])}]")
        return " ".join(parts) + (f" ({row['disagrees']})" if row["disagrees"] else "")

    return pd.DataFrame(
        {
            "v1 line": seen["line_v1"],
            "v2 line": seen["line_v2"],
            "change": [change(row) for _, row in seen.iterrows()],
            "species": seen["species"],
            "question": [texts(row) for _, row in seen.iterrows()],
        }
    )
