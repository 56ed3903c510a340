"""Line plot of the accuracy of each model in two or three variants over a number of images: solid,
dashed and dotted lines of one colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import (
    Mark,
    dodge,
    draw_categories,
    draw_means,
    interval_note,
    legends_below,
    numeric_axis,
    percent_limits,
)
from vrag_kit.plotting.old_style import DARK, grid_shape, model_colors, new_figure

_STYLES: tuple[tuple[Literal["-", "--", ":"], str], ...] = (("-", "o"), ("--", "s"), (":", "^"))
"""Line and marker of each variant."""


def old_lines(
    sources: Mapping[str, pd.DataFrame],
    variants: Mapping[str, str],
    *,
    by: str,
    x: str,
    xlabel: str,
    levels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws one panel per source (title → table with model, `by`, `x`, value, ci_low, ci_high, n,
    in percent), all on one y axis. Four or more sources are in two columns.

    `variants` maps the values of the column `by` to the names of their lines, `levels` likewise for
    what has no position on the x axis, such as zero-shot, which is at the side. Lines are shifted a
    little to keep their bars, 95 % intervals, distinct; points are hollow where answers failed
    (`draw_means`).
    """
    beside = 1 if levels else 0
    rows, columns = grid_shape(len(sources))
    figure, grid = new_figure(
        rows,
        (1 + beside) * columns,
        ((5.2 + 1.5 * beside) * columns, 4.7 * rows + 0.3),
        sharey=True,
        width_ratios=[0.3, 1.0][1 - beside :] * columns,
    )
    axes = list(grid.flat)
    for axis in axes[(1 + beside) * len(sources) :]:
        axis.remove()
    axes = axes[: (1 + beside) * len(sources)]
    tables = {title: table.assign(variant=table[by]) for title, table in sources.items()}
    for place, (title, table) in enumerate(tables.items()):
        axis = axes[(1 + beside) * place + beside]
        _lines(axis, table.assign(at=table[x]), list(variants))
        axis.set(title=panel_title(title, table), xlabel=xlabel)
        if levels:
            names = {level: name.replace(" ", "\n", 1) for level, name in levels.items()}
            draw_categories(axes[2 * place], table, names, "variant")
        axes[(1 + beside) * place].set(ylabel="Accuracy (%)")
    shown = [
        table[table["variant"].isin([*variants, *(levels or {})])] for table in tables.values()
    ]
    legends_below(axes[beside :: 1 + beside], 5.2)
    axes[0].set(ylim=percent_limits(shown))
    for axis in axes:
        axis.tick_params(labelleft=True)
    styles = [
        Line2D([], [], color=DARK, linestyle=line, marker=marker, label=name)
        for (line, marker), name in zip(_STYLES, variants.values(), strict=False)
    ]
    figure.legend(handles=styles, loc="outside upper center", ncols=3, fontsize=9)
    figure.supxlabel(interval_note(shown), fontsize=9)
    return figure


def _lines(axis: Axes, table: pd.DataFrame, variants: list[str]) -> None:
    """Every model's variants."""
    colors = model_colors(table["model"])
    known = table[table["variant"].isin(variants)]
    step = 0.015 * max(1, known["at"].max() - known["at"].min())
    shifts = iter(dodge(len(colors) * len(variants), step))
    for model, color in colors.items():
        for variant, (style, marker) in zip(variants, _STYLES, strict=False):
            line = known[(known["model"] == model) & (known["variant"] == variant)]
            line = line.sort_values("at")
            look = Mark(color, marker, style)
            draw_means(axis, line["at"].to_numpy(float) + next(shifts), line, look)
        axis.plot([], [], color=color, linewidth=4, label=model)
    numeric_axis(axis, known["at"])
