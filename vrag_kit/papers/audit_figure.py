"""Figure of an audit's findings, shared by all papers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.audit import (
    AGREES,
    CONTRADICTS,
    FINDINGS,
    NOT_COMPARABLE,
    ROUNDED,
    audit_summary,
)
from vrag_kit.plotting.old_style import DARK, GREY, PALETTE, new_figure

_COLORS = dict(zip(FINDINGS, ("#d5dae0", PALETTE[5], GREY, PALETTE[1]), strict=True))
_WORDS = {  # as the numbers beside the bars say it
    AGREES: "agree",
    ROUNDED: "consistent with rounding",
    NOT_COMPARABLE: "not comparable",
    CONTRADICTS: "contradict",
}
APART = ("name", "reported", "recomputed", "otherwise")
"""Columns of the table of contradictions on the right of the figure."""
_HEIGHT = 5.6
_ROW = 0.56  # inches of a row on the right, where there are many


def audit_figure(checks: pd.DataFrame, apart: pd.DataFrame) -> Figure:
    """Plots the findings of each check (left) and the contradictions in `apart` (right). Left:
    shares of rows, with counts. Right: reported and recomputed numbers.

    `checks` are the rows of an audit (`audit_rows`); `apart` has the columns `APART`: name of a
    row, reported and recomputed, in percent or points, and a label of the second ("recomputed").
    """
    height = max(_HEIGHT, _ROW * len(apart))
    figure, (axes,) = new_figure(1, 2, (13.5, height), width_ratios=(1.25, 1))
    _findings(axes[0], audit_summary(checks))
    _apart(axes[1], apart)
    figure.supxlabel("In brackets: tables and figures of the paper.", fontsize=9)
    return figure


def _findings(axis: Axes, summary: pd.DataFrame) -> None:
    counts = summary[list(FINDINGS)]
    shares = 100 * counts.div(counts.sum(axis=1), axis=0)
    rows, start = np.arange(len(counts)), np.zeros(len(counts))
    for finding in FINDINGS:
        label = f"{finding} ({counts[finding].sum()})"
        axis.barh(rows, shares[finding], 0.78, start, color=_COLORS[finding], label=label)
        start += shares[finding].to_numpy()
    for y, row in enumerate(counts.to_dict("records")):
        found = [f"{row[finding]} {words}" for finding, words in _WORDS.items() if row[finding]]
        color = _COLORS[CONTRADICTS] if row[CONTRADICTS] else DARK
        axis.text(102, y, ", ".join(found), fontsize=9, va="center", color=color)
    names = [f"{check} ({tables})" for check, tables in summary["tables"].items()]
    axis.set_yticks(rows, names, fontsize=9)
    axis.invert_yaxis()
    axis.set_xticks([])
    total, agree = counts.sum().sum(), counts[AGREES].sum()
    not_so = counts[CONTRADICTS].sum()
    axis.set(
        title=f"Of {total} checks {agree} agree, {not_so} contradict",
        xlabel="rows of each check (%)",
        xlim=(0, 100),
    )
    axis.grid(visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.15, -0.08), ncols=4, fontsize=9)


def _apart(axis: Axes, apart: pd.DataFrame) -> None:
    for y, row in enumerate(apart.to_dict("records")):
        printed, other = row["reported"], row["recomputed"]
        axis.barh(y, printed - other, 0.6, color=_COLORS[CONTRADICTS])
        words = f"{printed:.2f} reported\n{other:.2f} {row['otherwise']}"
        at = (max(printed - other, 0), y)
        axis.annotate(words, at, (5, 0), textcoords="offset points", fontsize=9, va="center")
    axis.axvline(0, color=DARK, linewidth=1)
    axis.set_yticks(range(len(apart)), apart["name"], fontsize=9)
    axis.invert_yaxis()
    axis.margins(x=0.25)
    axis.set(title="Largest inconsistencies", xlabel="reported − recomputed (points)")
    axis.grid(axis="y", visible=False)
