"""Figure of RAGChecker's inequalities, by row of MRAG-Suite's tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.style import GREY, OUTCOME, fit, new_figure, set_caption

_NAMES = {
    "H": "hallucination",
    "F": "faithfulness",
    "SK": "self-knowledge",
    "P": "precision",
}
_LOOKS = {True: (GREY, "obeys the definition"), False: (OUTCOME["incorrect"], "violates it")}


def inequality_figure(rows: pd.DataFrame) -> Figure:
    """Draws one dot for each published row and inequality, by table: right of the line the row
    violates RAGChecker's definitions. `rows` comes from `inequalities`.
    """
    names = list(rows["inequality"].unique())
    figure, axes = new_figure(1, len(names), height=3.1, sharey=True, sharex=True)
    for axis, name in zip(axes[0], names, strict=True):
        mine = rows[rows["inequality"] == name]
        _draw_dots(axis, mine)
        head = " ".join(_NAMES.get(part, part) for part in name.replace("at most", "≤").split())
        count = f"{(~mine['holds']).sum()} of {len(mine)} rows violate"
        axis.set_title(fit(f"{head}\n{count}", 1.55, 8))
    figure.supxlabel("Points above what the definitions allow", fontsize=8)
    broken = ~rows.groupby(["table", "cell"], sort=False)["holds"].all()
    every = broken.groupby("table", sort=False).agg(["sum", "size"])
    counts = [(table, f"{n} of {count}") for table, n, count in every.itertuples()]
    ticks = [f"Table {table}\n{count} rows\nviolate" for table, count in counts]
    axes[0][0].set_yticks(range(len(ticks)), ticks)
    handles = [
        Line2D([], [], color=color, marker=".", linestyle="", label=f"a row that {words}")
        for color, words in _LOOKS.values()
    ]
    words = ", ".join(f"{count} rows of Table {table}" for table, count in counts)
    title = f"RAGChecker's definitions are violated by {words}"
    set_caption(
        figure, title, "A dot is a row. At the left: the rows that violate any definition.", handles
    )
    return figure


def _draw_dots(axis: Axes, rows: pd.DataFrame) -> None:
    """One row of dots a table, spread so that none hides another."""
    rng = np.random.default_rng(0)
    tables = list(rows["table"].unique())
    y = rows["table"].map(tables.index) + rng.uniform(-0.3, 0.3, len(rows))
    for holds, (color, _) in _LOOKS.items():
        mine = rows["holds"] == holds
        axis.plot(rows["excess"][mine], y[mine], ".", markersize=4, color=color)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_ylim(len(tables) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
