"""Text out of data as Markdown, and what a difference says in a sentence that claims nothing
which its interval does not.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from vrag_kit.analysis.cells import LEVEL, interval_end

_MARKUP = re.compile(r"[\\`*_{}\[\]|~$]|:(?=//)")


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


def finding(row: Mapping[Hashable, Any], arm: str, baseline: str) -> str:
    """What a row of `in_percent(compare(…))` says of `arm` against `baseline`, as a title.

    "Higher" and "lower" need a 95 % interval that leaves out 0; where p_holm is not
    below 0.05 the sentence says that the difference does not last after correction.
    """
    if pd.isna(row["value"]):
        return f"{arm} and {baseline} have no scores to compare"
    low, high = row["ci_low"], row["ci_high"]
    if pd.isna(low) or pd.isna(high):
        return f"the difference of {arm} to {baseline} has no interval"
    if low <= 0 <= high:
        reach = f"{low:+.1f} to {high:+.1f}".replace("-", "−")
        return f"no difference of {arm} to {baseline} shown (95 % interval {reach})"
    word = "higher" if row["value"] > 0 else "lower"
    unit = "points" if row["unit"] == "percent" else row["unit"]
    nearest, furthest = map(interval_end, sorted([abs(low), abs(high)]))
    size = f"{abs(row['value']):.1f} {unit} [{nearest}, {furthest}]"
    lasts = "" if row["p_holm"] < LEVEL else ", but not after correction"
    return f"{arm} is {word} than {baseline} by {size}{lasts}"
