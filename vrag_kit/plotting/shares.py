"""How often labels occur, in panels of bars, beside what was printed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.style import DARK, PALETTE, new_figure

_WIDTH = 0.8
_COLUMNS = 3


def shares_figure(table: pd.DataFrame, titles: Mapping[str, str], printed: str) -> Figure:
    """A panel for each value of the column `of`, under its title: bars of share (percent)
    by label, a colour for each part, n in its legend; what was printed (`paper`, NaN for
    nothing) as diamonds, called `printed`.

    `table` has the columns of, label, part, n, share and paper.
    """
    panels = [(title, table[table["of"] == of]) for of, title in titles.items()]
    rows = -(-len(panels) // _COLUMNS)
    most = max(len(panel["label"].unique()) for _, panel in panels)
    size = (4.6 * _COLUMNS, rows * (1.5 + 0.3 * most))
    figure, axes = new_figure(rows, _COLUMNS, size)
    parts = list(dict.fromkeys(table["part"]))
    colors = {part: PALETTE[place] for place, part in enumerate(parts)}
    for axis, (title, panel) in zip(axes.flat, panels, strict=False):
        _panel(axis, panel, colors, printed)
        axis.set(title=title, xlabel="share (%)")
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_axis_off()
    return figure


def _panel(axis: Axes, panel: pd.DataFrame, colors: Mapping[str, str], printed: str) -> None:
    labels = list(dict.fromkeys(panel["label"]))
    parts = list(dict.fromkeys(panel["part"]))
    height = _WIDTH / len(parts)
    named = printed
    for number, part in enumerate(parts):
        rows = panel[panel["part"] == part].set_index("label").reindex(labels)
        y = np.arange(len(labels)) + height * (number - (len(parts) - 1) / 2)
        n = int(rows["n"].sum())
        axis.barh(y, rows["share"], height, color=colors[part], label=f"{part} (n = {n:,})")
        if rows["paper"].notna().any():
            axis.plot(rows["paper"], y, "D", color=DARK, markersize=4, label=named)
            named = ""  # once in the legend
    axis.set_yticks(range(len(labels)), labels, fontsize=10)
    axis.invert_yaxis()
    axis.set_xlim(left=0)
    axis.grid(axis="y", visible=False)
    axis.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.4, -0.14), ncols=1)
