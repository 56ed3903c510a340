"""Panels of lines over k: computed ones with intervals, published ones dotted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.old_panels import dodge, legends_below
from vrag_kit.plotting.old_style import DARK, GREY, PALETTE, new_figure
from vrag_kit.types import Benchmark

_COLUMNS = 3
_SPREAD = 0.5  # of the distance between two k, over which all lines stand apart


def curve_panels(
    panels: Mapping[str, pd.DataFrame],
    benchmark: Benchmark,
    *,
    ylabel: str,
    xlabel: str,
    limits: Mapping[str, float] | None = None,
) -> Figure:
    """Draws a panel for each of `panels`: title → table with series, k, value, ci_low, ci_high, n,
    in percent, and printed (true for a published line, dotted, in the colour of the computed one of
    that name).

    `limits` draws a dashed line in the first panel for each name → value. Intervals are
    over the groups of `benchmark`.
    """
    rows = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    figure, axes = new_figure(rows, columns, (4.6 * columns, 4.9 * rows), sharey=True)
    for axis, (title, table) in zip(axes.flat, panels.items(), strict=False):
        _panel(axis, table)
        axis.set(title=title, xlabel=xlabel, ylabel=ylabel, ylim=(0, 103))
        axis.tick_params(labelleft=True)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_axis_off()
    for place, (name, value) in enumerate((limits or {}).items()):
        color = GREY if place else DARK
        axes.flat[0].axhline(value, color=color, linestyle="--", linewidth=1.2, label=name)
    legends_below(list(axes.flat)[: len(panels)], 4.6, most=2, down=-0.14, size=8.5)
    figure.supxlabel(
        f"{benchmark.name}; bars: 95 % intervals over {benchmark.groups_are}; dotted: reported"
        " (the paper's data)",
        fontsize=9,
    )
    return figure


def _panel(axis: Axes, table: pd.DataFrame) -> None:
    lines = list(dict.fromkeys(table["series"]))
    colors = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(lines)}
    ours = table[~table["printed"].astype(bool)]
    cutoffs = sorted(table["k"].unique())
    gap = min((b - a for a, b in pairwise(cutoffs)), default=1)
    shifts = dict(zip(lines, dodge(len(lines), _SPREAD * gap / max(1, len(lines))), strict=True))
    for name, line in ours.sort_values("k").groupby("series", sort=False):
        x = line["k"] + shifts[name]
        label = f"{name} (n = {int(line['n'].max()):,})"
        axis.plot(
            x, line["value"], "o-", color=colors[name], markersize=4.5, label=label, clip_on=False
        )
        axis.vlines(x, line["ci_low"], line["ci_high"], color=colors[name], linewidth=1.1)
    theirs = table[table["printed"].astype(bool)]
    for name, line in theirs.sort_values("k").groupby("series", sort=False):
        label = f"{name}, reported"
        axis.plot(line["k"], line["value"], ":", color=colors[name], linewidth=1.8, label=label)
    axis.set_xticks(cutoffs, [f"{k:g}" for k in cutoffs])
