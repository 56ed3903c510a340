"""What a table of differences says, in plain sentences that claim nothing which its
intervals do not.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from vrag_kit.analysis.cells import LEVEL, interval_end
from vrag_kit.analysis.settings_table import SETTING_NAMES
from vrag_kit.errors import VragError

_MARKUP = re.compile(r"[\\`*_{}\[\]|~$]|:(?=//)")
Row = dict[Hashable, Any]
"""A row of a table: values of any type, by column."""
_NOT_APART = "no difference shown"
_UNCORRECTED = "but not after correction"
_NO_INTERVAL = "has no interval, so nothing can be said"
_NO_VERDICTS = "has no verdicts to compare, so nothing can be said"
_SAYS_ITS_IMAGES = ("zero_shot", "gt_clue", "non_clue")
"""Settings whose name says how many images they have."""
_NUMBER = "its number"  # no column of a table is called so
_NEEDED = ["value", "ci_low", "ci_high", "p_holm", "unit"]


def as_markdown(text: str) -> str:
    """Markdown that shows a text out of data as it is: nothing of it becomes a tag, a link,
    emphasis or a cell, and it stays on its line.
    """
    return _MARKUP.sub(r"\\\g<0>", escape(" ".join(text.split()), quote=False))


@dataclass(frozen=True, slots=True)
class Prose:
    """A text that Jupyter and the report show as Markdown."""

    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def differences_in_words(
    claims: pd.DataFrame, *, than: str, by: Sequence[str] = ("model",), of: str = "accuracy"
) -> Prose:
    """Sentences on `in_percent(compare(…))`, one a value of `by`: which arms are higher
    than `than`, which lower, by how much, and where no difference is shown.

    "Higher" and "lower" need a 95 % interval that leaves out 0; where p_holm is not
    below 0.05 they are said not to last after correction. An arm whose answers have no
    verdict on any question in common with `than` says so.
    One arm at several k with one verdict is one clause, with the smallest and largest
    difference and the widest reach of their intervals. All rows are in one unit; a
    table without rows says so.
    """
    if missing := [name for name in _NEEDED if name not in claims]:
        raise VragError(
            f"differences_in_words: the table has no column {missing[0]!r}; found"
            f" {', '.join(map(str, claims.columns))}. Expected in_percent(compare(…))."
        )
    if claims.empty:
        return Prose(f"There is nothing to compare with {as_markdown(than)}.")
    unit = "points" if claims["unit"].iloc[0] == "percent" else claims["unit"].iloc[0]
    lines = []
    labels = _labels(claims, by)
    for _, part in claims.groupby(list(by), sort=False):
        rows = part.to_dict("records")
        name = ", ".join(_said(column, rows[0]) for column in by)
        clauses = [_clause(*key, rows) for key, rows in _alike(rows, labels).items()]
        lines.append(f"* **{name}**: {'; '.join(clauses)}.")
    what = as_markdown(f"{of[:1].upper()}{of[1:]} against {than}")
    head = f"{what}, in {unit} with 95 % intervals"
    if any(_UNCORRECTED in line for line in lines):
        head += (
            f"; “{_UNCORRECTED}” marks a difference whose p is below {LEVEL} alone, but not"
            " among all comparisons of its question (Holm)"
        )
    return Prose("\n".join([f"{head}:\n", *lines]))


def _labels(claims: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """The columns that tell the rows of one sentence apart: those before the value,
    without what is the same in all rows.
    """
    before = [name for name in claims.columns[: claims.columns.get_loc("value")] if name not in by]
    return [name for name in before if claims[name].nunique() > 1] or before


def _verdict(row: Row) -> str:
    if pd.isna(row["value"]):
        return _NO_VERDICTS
    if pd.isna(row["ci_low"]) or pd.isna(row["ci_high"]):
        return _NO_INTERVAL
    if row["ci_low"] <= 0 <= row["ci_high"]:
        return _NOT_APART
    word = "higher" if row["value"] > 0 else "lower"
    return word if row["p_holm"] < LEVEL else f"{word}, {_UNCORRECTED},"


def _alike(rows: Sequence[Row], labels: Sequence[str]) -> dict[tuple[str, str], list[Row]]:
    """The rows of one verdict on one thing, by (thing, verdict), in order: "top-k at k" is
    one thing at every k.
    """
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        needed = [label for label in labels if label != "k" or not _is_named(row)]
        name = " at ".join(_said(label, row) for label in needed)
        pieces = name.rsplit(" = ", 1)
        number = pieces[1] if len(pieces) > 1 else ""
        parts.setdefault((pieces[0], _verdict(row)), []).append({**row, _NUMBER: number})
    return parts


def _is_named(row: Row) -> bool:
    return row.get("setting") in _SAYS_ITS_IMAGES


def _clause(thing: str, verdict: str, rows: Sequence[Row]) -> str:
    """What is said of a thing; its numbers stand together, "k = 3, 5"."""
    numbers = ", ".join(row[_NUMBER] for row in rows)
    name = f"{thing} = {numbers}" if numbers else thing
    low, high = min(row["ci_low"] for row in rows), max(row["ci_high"] for row in rows)
    if verdict in (_NO_INTERVAL, _NO_VERDICTS):
        return f"{name} {verdict}"
    if verdict == _NOT_APART:
        at = "at" if name.startswith("k = ") else "for"
        reach = "intervals within" if len(rows) > 1 else "interval"
        return f"{verdict} {at} {name} (95 % {reach} {_signed(low)} to {_signed(high)})"
    sizes = [f"{size:.1f}" for size in sorted(abs(row["value"]) for row in rows)]
    size = " to ".join(dict.fromkeys([sizes[0], sizes[-1]]))
    nearest, furthest = map(interval_end, sorted([abs(low), abs(high)]))
    return f"{name} {verdict} by {size} [{nearest}, {furthest}]"


def _said(column: str, row: Row) -> str:
    """A value as words: settings by their names, numbers with what they count."""
    value = row[column]
    if column == "setting":
        return SETTING_NAMES.get(value, as_markdown(str(value)))
    if column == "ks":
        return f"k from {value}"
    number = isinstance(value, int | float)
    return f"{column} = {value:g}" if number else as_markdown(str(value))


def _signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−")
