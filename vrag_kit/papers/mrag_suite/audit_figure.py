"""What the audit of MRAG-Suite's tables finds, in one look, and its inequalities row by
row.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers import audit_figure as shared
from vrag_kit.papers.audit_rows import contradictions
from vrag_kit.plotting.style import DARK, GREY, PALETTE, new_figure

_SHORT = {
    "gt_plus_distractors": "GPD",
    "distractors_only": "DO",
    "gt_only": "GO",
    ", single": "",
    "_": " ",
}
_NO_POINTS = ("what the data set's own paper prints", "text:")
"""Beginnings of checks that are not drawn on the right: pixels, and orders that the text
tells without a number.
"""
_WORDS = {
    "H": "hallucination",
    "F": "faithfulness",
    "SK": "self-knowledge",
    "P": "precision",
}


def audit_figure(checks: pd.DataFrame) -> Figure:
    """Left: what every check found, as shares of its rows with their numbers. Right: of
    each check of percentages the largest contradiction, in points, beside what follows
    from the rest.

    `checks` as `audit` gives them.
    """
    found = contradictions(checks)
    found = found[~found["check"].str.startswith(_NO_POINTS)]
    size = (found["printed"] - found["recomputed"]).abs()
    ordered = found.loc[size.sort_values(ascending=False, kind="stable").index]
    rows = []
    for row in ordered.drop_duplicates("check").to_dict("records"):
        place = row["where"]
        for long, short in _SHORT.items():
            place = place.replace(long, short)
        rows.append(
            {
                "name": f"{row['check']}\nTable {row['table']}: {place}",
                "printed": row["printed"],
                "recomputed": row["recomputed"],
                "otherwise": "recomputed",
            }
        )
    return shared.audit_figure(checks, pd.DataFrame(rows, columns=list(shared.APART)))


def inequality_figure(rows: pd.DataFrame) -> Figure:
    """The inequalities that RAGChecker's definitions imply, one dot a printed row of a
    table: right of the line it cannot be what they define.

    `rows` as `inequalities` gives them.
    """
    names = list(rows["inequality"].unique())
    figure, axes = new_figure(1, len(names), (14, 3.8), sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        _dots(axis, rows[rows["inequality"] == name])
        axis.set_title(f"{name}: {_share(rows, name)}")
    axes[0][0].set_ylabel("table")
    letters = ", ".join(f"{short} {word}" for short, word in _WORDS.items())
    words = "points above what RAGChecker's definitions allow (orange: not allowed)"
    figure.supxlabel(f"{words}; above: rows that obey\n{letters}", fontsize=11)
    return figure


def _dots(axis: Axes, rows: pd.DataFrame) -> None:
    """One row of dots a table, spread so that none hides another."""
    rng = np.random.default_rng(0)
    tables = list(rows["table"].unique())
    y = rows["table"].map(tables.index) + rng.uniform(-0.3, 0.3, len(rows))
    for obeys, color in ((True, GREY), (False, PALETTE[1])):
        mine = rows["obeys"] == obeys
        axis.scatter(rows["above"][mine], y[mine], 12, color=color, linewidth=0)
    axis.axvline(0, color=DARK, linewidth=1)
    axis.set_yticks(range(len(tables)), tables)
    axis.set_ylim(len(tables) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


def _share(rows: pd.DataFrame, name: str) -> str:
    obeys = rows[rows["inequality"] == name]["obeys"]
    return f"{obeys.sum()} of {len(obeys)}"
