"""Escapes text for Markdown, and describes a difference in a sentence that claims no more than its
interval.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from vrag_kit.analysis.report_tables import LEVEL, format_ci_bound

_MARKUP = re.compile(r"[\\`*_{}\[\]|~$]|:(?=//)")


def escape_markdown(text: str) -> str:
    """Escapes a text from data for Markdown: nothing of it becomes a tag, a link, emphasis or a
    cell, and it stays on its line.
    """
    return _MARKUP.sub(r"\\\g<0>", escape(" ".join(text.split()), quote=False))


@dataclass(frozen=True, slots=True)
class MarkdownText:
    """A text that Jupyter and the report render as Markdown."""

    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def finding(row: Mapping[Hashable, Any], arm: str, baseline: str) -> str:
    """A title for a row of `to_percent(paired_differences(…))`: `arm` against `baseline`.

    "Higher" and "lower" need a 95 % interval that excludes 0; where p_holm is not below 0.05 the
    sentence says that the difference does not last after correction.
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
    nearest, furthest = map(format_ci_bound, sorted([abs(low), abs(high)]))
    size = f"{abs(row['value']):.1f} {unit} [{nearest}, {furthest}]"
    lasts = "" if row["p_holm"] < LEVEL else ", but not after correction"
    return f"{arm} is {word} than {baseline} by {size}{lasts}"
