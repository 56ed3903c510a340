"""Figure of RAGChecker's inequalities, by row of MRAG-Suite's tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.old_style import DARK, GREY, PALETTE, new_figure

_WORDS = {
    "H": "hallucination",
    "F": "faithfulness",
    "SK": "self-knowledge",
    "P": "precision",
}


def inequality_figure(rows: pd.DataFrame) -> Figure:
    """Plots RAGChecker's inequalities, one dot per published row of a table: right of the line it
    violates the definitions.

    `rows` comes from `inequalities`.
    """
    names = list(rows["inequality"].unique())
    figure, axes = new_figure(1, len(names), (14, 3.8), sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        _dots(axis, rows[rows["inequality"] == name])
        axis.set_title(f"{name}: {_share(rows, name)}")
    axes[0][0].set_ylabel("table")
    letters = ", ".join(f"{short} {word}" for short, word in _WORDS.items())
    words = "points above what RAGChecker's definitions allow (orange: not allowed)"
    figure.supxlabel(f"{words}; above: rows for which it holds\n{letters}", fontsize=11)
    return figure


def _dots(axis: Axes, rows: pd.DataFrame) -> None:
    """One row of dots a table, spread so that none hides another."""
    rng = np.random.default_rng(0)
    tables = list(rows["table"].unique())
    y = rows["table"].map(tables.index) + rng.uniform(-0.3, 0.3, len(rows))
    for holds, color in ((True, GREY), (False, PALETTE[1])):
        mine = rows["holds"] == holds
        axis.scatter(rows["excess"][mine], y[mine], 12, color=color, linewidth=0)
    axis.axvline(0, color=DARK, linewidth=1)
    axis.set_yticks(range(len(tables)), tables)
    axis.set_ylim(len(tables) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


def _share(rows: pd.DataFrame, name: str) -> str:
    holds = rows[rows["inequality"] == name]["holds"]
    return f"{holds.sum()} of {len(holds)}"
