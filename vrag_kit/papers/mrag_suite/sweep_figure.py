"""Figure of the prompt sweep: means on the selection half and on the held-out half."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_suite.datasets import metric_label
from vrag_kit.papers.mrag_suite.sweep import HELD_OUT, SELECTION
from vrag_kit.plotting.old_style import GREY, PALETTE, new_figure

_LOOKS = {SELECTION: (GREY, "o", "selection split"), HELD_OUT: (PALETTE[0], "s", "held-out split")}


def sweep_figure(sweeps: Mapping[str, pd.DataFrame]) -> Figure:
    """Plots a panel per data set (name → `prompt_sweep` in percent) with each prompt's mean on both
    halves, selection and held-out, with 95 % intervals as bars. The marks of the selected prompt
    are filled.
    """
    prompts = list(pd.concat(sweeps.values())["prompt"].unique())
    size = (3.6 * len(sweeps) + 2.6, 0.36 * len(prompts) + 1.9)
    figure, (axes,) = new_figure(1, len(sweeps), size)
    for place, (axis, (name, table)) in enumerate(zip(axes, sweeps.items(), strict=True)):
        _panel(axis, name, table.set_index("prompt").reindex(prompts))
        axis.set_ylim(len(prompts) - 0.5, -0.5)
        if place:
            axis.tick_params(labelleft=False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
    words = "Bars: 95 % intervals. Filled: the prompt selected for the data set."
    figure.suptitle(words, fontsize=9)
    return figure


def _panel(axis: Axes, name: str, table: pd.DataFrame) -> None:
    counts = [int(table[f"{half}_n"].max()) for half in _LOOKS]
    chosen = table["selected"].eq(True).to_numpy()
    rows = np.arange(len(table))
    for shift, (half, (color, marker, said)) in zip((-0.16, 0.16), _LOOKS.items(), strict=True):
        y = rows + shift
        axis.hlines(y, table[f"{half}_low"], table[f"{half}_high"], color=color, linewidth=1.3)
        for some, face in ((chosen, color), (~chosen, "white")):
            (drawn,) = axis.plot(table[half][some], y[some], marker, color=color, markersize=5.5)
            drawn.set(markerfacecolor=face, zorder=3)
        axis.plot([], [], marker, color=color, label=said)
    axis.set_yticks(rows, list(table.index), fontsize=9)
    metric = metric_label(str(table["metric"].iloc[0]))
    axis.set(title=f"{name}\n(n = {counts[0]} and {counts[1]})", xlabel=f"{metric} (%)")
    axis.grid(axis="y", visible=False)
