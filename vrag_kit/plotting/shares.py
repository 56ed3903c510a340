"""Figure of label shares in panels of bars, compared with published shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.old_style import DARK, PALETTE, new_figure

_WIDTH = 0.8
_COLUMNS = 3


def label_share_figure(table: pd.DataFrame, titles: Mapping[str, str], printed: str) -> Figure:
    """Draws a panel for each value of the column facet, under its title: bars of share (percent) by
    label, a colour for each population, n in its legend. Published shares (`published`, NaN for
    nothing) are diamonds, called `printed`.

    `table` has the columns facet, label, population, n, share and published.
    """
    panels = [(title, table[table["facet"] == facet]) for facet, title in titles.items()]
    rows = -(-len(panels) // _COLUMNS)
    most = max(len(panel["label"].unique()) for _, panel in panels)
    size = (4.6 * _COLUMNS, rows * (1.5 + 0.3 * most))
    figure, axes = new_figure(rows, _COLUMNS, size)
    populations = list(dict.fromkeys(table["population"]))
    colors = {name: PALETTE[place] for place, name in enumerate(populations)}
    for axis, (title, panel) in zip(axes.flat, panels, strict=False):
        _panel(axis, panel, colors, printed)
        axis.set(title=title, xlabel="share (%)")
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_axis_off()
    return figure


def _panel(axis: Axes, panel: pd.DataFrame, colors: Mapping[str, str], printed: str) -> None:
    labels = list(dict.fromkeys(panel["label"]))
    populations = list(dict.fromkeys(panel["population"]))
    height = _WIDTH / len(populations)
    named = printed
    for number, name in enumerate(populations):
        rows = panel[panel["population"] == name].set_index("label").reindex(labels)
        y = np.arange(len(labels)) + height * (number - (len(populations) - 1) / 2)
        n = int(rows["n"].sum())
        axis.barh(y, rows["share"], height, color=colors[name], label=f"{name} (n = {n:,})")
        if rows["published"].notna().any():
            axis.plot(rows["published"], y, "D", color=DARK, markersize=4, label=named)
            named = ""  # once in the legend
    axis.set_yticks(range(len(labels)), labels, fontsize=10)
    axis.invert_yaxis()
    axis.set_xlim(left=0)
    axis.grid(axis="y", visible=False)
    axis.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.4, -0.14), ncols=1)
