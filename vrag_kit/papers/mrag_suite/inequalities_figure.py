"""Figure of RAGChecker's inequalities, by row of MRAG-Suite's tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.style import GREY, OUTCOME, fit, new_figure, set_caption


def inequality_figure(rows: pd.DataFrame) -> Figure:
    """Draws one dot for each published row and inequality, by table: right of the line the row
    violates RAGChecker's definitions. `rows` comes from `inequalities`.
    """
    names = list(rows["inequality"].unique())
    figure, axes = new_figure(1, len(names), height=2.6, sharey=True, sharex=True)
    for axis, name in zip(axes[0], names, strict=True):
        mine = rows[rows["inequality"] == name]
        _draw_dots(axis, mine)
        head = f"{name.replace('at most', '≤')}: {(~mine['holds']).sum()} of {len(mine)} violate"
        axis.set_title(fit(head, 1.5, 8))
    figure.supxlabel("Points above what the definitions allow", fontsize=8)
    broken = rows.groupby(["table", "cell"])["holds"].all().eq(False).groupby("table")
    words = [
        f"{n} of {count} rows of Table {table}"
        for table, n, count in broken.agg(["sum", "size"]).itertuples()
    ]
    caption = (
        "A dot is a row of a table. Orange: not allowed. H: hallucination, F: faithfulness,"
        " SK: self-knowledge, P: precision."
    )
    title = f"RAGChecker's definitions are violated by {', '.join(words)}"
    set_caption(figure, title, caption)
    return figure


def _draw_dots(axis: Axes, rows: pd.DataFrame) -> None:
    """One row of dots a table, spread so that none hides another."""
    rng = np.random.default_rng(0)
    tables = list(rows["table"].unique())
    y = rows["table"].map(tables.index) + rng.uniform(-0.3, 0.3, len(rows))
    for holds, color in ((True, GREY), (False, OUTCOME["incorrect"])):
        mine = rows["holds"] == holds
        axis.plot(rows["excess"][mine], y[mine], ".", markersize=4, color=color)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(tables)), [f"Table {table}" for table in tables])
    axis.set_ylim(len(tables) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
