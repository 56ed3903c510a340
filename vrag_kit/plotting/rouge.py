"""Figure of ROUGE-1 recall against accuracy: one point per arm.

The same function draws computed and published numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import setting_name
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import (
    MARKERS,
    has_failures,
    interval_note,
    legend_columns,
    legends_below,
    percent_limits,
)
from vrag_kit.plotting.old_style import DARK, grid_shape, model_colors, new_figure

_MANY = 40
"""From here on the intervals of so many arms are drawn as hairlines."""
_FIRST = ("zero_shot", "gt_clue", "non_clue", "top_k", "one_in_k")
"""Settings that have the same marker in every figure; others get the next ones."""


def rouge_figure(sources: Mapping[str, pd.DataFrame]) -> Figure:
    """Draws one panel per source (title → table with model, setting, k, metric "accuracy" or
    "rouge", value, ci_low, ci_high, n, in percent), all on the same axes. Four or more sources are
    in two columns.

    A point is the mean of one model in one setting at one k: colours are models, markers settings.
    Thin lines are 95 % intervals, where there are any. A point is hollow where answers failed; a
    dark line then reaches from the accuracy if all of them were incorrect to that if all were
    correct.
    """
    rows, columns = grid_shape(len(sources))
    wide = 5.8 * columns
    figure, grid = new_figure(rows, columns, (wide, 6.2 * rows), sharey=True)
    axes = list(grid.flat)[: len(sources)]
    for axis in list(grid.flat)[len(sources) :]:
        axis.remove()
    tables = list(sources.values())
    markers = _markers(tables)
    for axis, (title, table) in zip(axes, sources.items(), strict=True):
        _panel(axis, table, markers)
        arms = len(table[["model", "setting", "k"]].drop_duplicates())
        axis.set(title=panel_title(f"{title}: {arms} arms", table))
        axis.set(xlabel="Accuracy (%)", ylabel="ROUGE-1 recall (%)")
        axis.tick_params(labelleft=True)
    legends_below(axes, 5.8, most=4, down=-0.12)
    low, high = percent_limits(tables)
    for axis in axes:
        axis.set(xlim=(min(-3.0, low), high), ylim=(min(-3.0, low), high))
    names, handles = [setting_name(setting) for setting in markers], []
    for marker in markers.values():
        handles += axes[0].plot([], [], marker, color=DARK, markersize=7)
    columns = legend_columns(wide, 5)
    figure.legend(handles, names, loc="outside upper center", ncols=columns, fontsize=9)
    without_runs = [t.assign(ci_low_runs=np.nan) if "ci_low_runs" in t else t for t in tables]
    figure.supxlabel(interval_note(without_runs), fontsize=9)  # too short to be seen here
    return figure


def _markers(tables: Sequence[pd.DataFrame]) -> dict[str, str]:
    """Setting → its marker, of those that there are: the known ones, then others as they
    come.
    """
    found = dict.fromkeys(pd.concat([table["setting"] for table in tables]))
    every = [*_FIRST, *(setting for setting in found if setting not in _FIRST)]
    markers = zip(every, cycle(MARKERS), strict=False)
    return {setting: marker for setting, marker in markers if setting in found}


def _panel(axis: Axes, table: pd.DataFrame, markers: Mapping[str, str]) -> None:
    """The points of one source."""
    colors = model_colors(table["model"])
    arm = ["model", "setting", "k"]
    of_x, of_y = table["metric"] == "accuracy", table["metric"] == "rouge"
    both = table[of_x].merge(table[of_y], on=arm, suffixes=("", "_rouge"))
    width = 0.6 if len(both) <= _MANY else 0.25
    for (model, setting), arms in both.groupby(["model", "setting"], sort=False):
        color, marker = colors[str(model)], markers[str(setting)]
        x, y = arms["value"].to_numpy(float), arms["value_rouge"].to_numpy(float)
        axis.hlines(y, arms["ci_low"], arms["ci_high"], color=color, linewidth=width)
        axis.vlines(x, arms["ci_low_rouge"], arms["ci_high_rouge"], color=color, linewidth=width)
        failed = has_failures(arms)
        if failed.any() and "bound_low" in arms:
            ends = arms.loc[failed, ["bound_low", "bound_high"]].to_numpy(float)
            axis.hlines(y[failed], *ends.T, color=DARK, linewidth=1)
        for some, face, edge in ((~failed, color, "white"), (failed, "white", color)):
            if some.any():
                (points,) = axis.plot(x[some], y[some], marker, markersize=8, alpha=0.9)
                points.set(markerfacecolor=face, markeredgecolor=edge)
                points.set_markeredgewidth(0.5 if edge == "white" else 1.4)
    for model, color in colors.items():
        axis.plot([], [], "o", color=color, label=model)
