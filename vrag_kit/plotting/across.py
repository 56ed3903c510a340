"""Benchmarks down, metrics across: a mean with its interval in each cell, or the reason
why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.style import DARK, GREY, colors_of, new_figure

_CELL = (1.72, 0.86)  # inches
_LETTERS = 20  # of a reason, in a line
_WITHIN = {"truthfulness": (-100.0, 100.0)}
_SHARE = (0.0, 100.0)


def across_figure(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """A row for each benchmark and model of `across`, a column for each metric of
    `names` (metric → its title): points with 95 % intervals, n below, or the reason.

    Shares are drawn from 0 to 100 %, truthfulness from −100 %, a ratio as far as its
    intervals reach.
    """
    lines = list(dict.fromkeys(zip(table["benchmark"], table["model"], strict=True)))
    colors = colors_of(table["model"])
    size = (_CELL[0] * len(names) + 2.2, _CELL[1] * len(lines) + 1.5)
    figure, (axes,) = new_figure(1, len(names), size, sharey=True)
    for axis, (metric, title) in zip(axes, names.items(), strict=True):
        cells = table[table["metric"] == metric]
        _frame(axis, cells, fill(title, 16))
        for row in cells.to_dict("records"):
            place = lines.index((row["benchmark"], row["model"]))
            if row["reason"]:
                _say(axis, place, row["reason"])
                continue
            color = colors[row["model"]]
            axis.hlines(place, row["ci_low"], row["ci_high"], color=color, linewidth=2)
            face = "white" if row["n_failed"] else color
            axis.plot(row["value"], place, "o", color=color, markersize=7, markerfacecolor=face)
            _count(axis, place, row["value"], f"n = {row['n']:,}")
    axes[0].set_yticks(range(len(lines)), [fill(name, 18) for name, _ in lines])
    axes[0].set_ylim(len(lines) - 0.5, -0.5)
    handles = [Line2D([], [], color=c, linewidth=4, label=name) for name, c in colors.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=10)
    figure.supxlabel("Bars: 95 % intervals. Hollow: some answers failed.", fontsize=10)
    return figure


def _frame(axis: Axes, cells: pd.DataFrame, title: str) -> None:
    unit = cells["unit"].iloc[0]
    low, high = _SHARE
    if unit == "percent":
        low, high = _WITHIN.get(str(cells["metric"].iloc[0]), _SHARE)
    else:
        low = min(0.0, cells["ci_low"].min())
        high = max(1.0, cells["ci_high"].max())
        axis.axvline(1, color=GREY, linewidth=1, linestyle=":")
    room = 0.06 * (high - low)
    axis.set(title=title, xlabel="%" if unit == "percent" else unit, xlim=(low - room, high + room))
    axis.axvline(0, color=DARK, linewidth=1)
    axis.tick_params(axis="x", labelsize=9)
    axis.tick_params(axis="y", labelsize=10.5)


def _say(axis: Axes, place: int, reason: str) -> None:
    """The reason in the middle of its cell."""
    axis.text(
        0.5,
        place,
        fill(reason, _LETTERS),
        transform=axis.get_yaxis_transform(),
        ha="center",
        va="center",
        fontsize=8,
        fontstyle="italic",
        color=DARK,
    )


def _count(axis: Axes, place: int, value: float, words: str) -> None:
    """n below the point, inside the cell."""
    low, high = axis.get_xlim()
    share = (value - low) / (high - low)
    side = "center"
    if not 0.2 < share < 0.8:
        side = "left" if share < 0.5 else "right"
    axis.annotate(
        words,
        (value, place),
        (0, -7),
        textcoords="offset points",
        ha=side,
        va="top",
        fontsize=8,
        color=DARK,
    )
