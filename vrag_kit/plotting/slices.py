"""Forest plot of means by slice of the questions: a line per slice, a panel per benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.old_panels import MARKERS, dodge, has_failures
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure

_ROW = 0.34  # inches of a line of one arm
_BOUNDS = ["value", "ci_low", "ci_high"]


def slice_forest_plot(
    sources: Mapping[str, pd.DataFrame], settings: Mapping[str, str], *, xlabel: str = ""
) -> Figure:
    """Draws one panel per source (title → table with model, setting, facet, slice, metric, value,
    ci_low, ci_high, n, n_failed, in percent): a line for each slice with its n, grouped by facet.
    Every model in each of `settings` (setting → its name) has its mark, with 95 % intervals as
    bars.

    n is that of the arm with the most. A mark is hollow where some conversations failed.
    Panels have one x axis, named by `xlabel` or else by its metrics.
    """
    lines = {title: _lines(table) for title, table in sources.items()}
    most = max(len(names) for names in lines.values())
    arms = max(table["model"].nunique() for table in sources.values()) * len(settings)
    height = (_ROW + 0.1 * (arms - 1)) * most + 1.9
    figure, (axes,) = new_figure(1, len(sources), (6.4 * len(sources) + 1.2, height))
    low, high = _ends(list(sources.values()))
    colors: dict[str, str] = {}
    for axis, (title, table) in zip(axes, sources.items(), strict=True):
        own = model_colors(table["model"])
        colors |= own
        looks = dict(zip(settings, cycle(MARKERS), strict=False))
        there = [name for name in looks if name in set(table["setting"])]
        ways = list(product(own, there))
        for shift, (model, setting) in zip(dodge(len(ways), 0.72 / len(ways)), ways, strict=True):
            chosen = (table["model"] == model) & (table["setting"] == setting)
            _marks(axis, table[chosen], lines[title], shift, (own[model], looks[setting]))
        _frame(axis, lines[title], most)
        metrics = " or ".join(table["metric"].unique())
        axis.set(title=title, xlabel=xlabel or f"{metrics} (%)", xlim=(low, high))
    figure.legend(
        handles=_handles(colors, settings), loc="outside upper center", ncols=4, fontsize=9
    )
    failed = any((table["n_failed"] > 0).any() for table in sources.values())
    words = " Hollow: some answers failed." if failed else ""
    figure.supxlabel(f"Bars: 95 % intervals. In brackets: n.{words}", fontsize=9)
    return figure


def _lines(table: pd.DataFrame) -> dict[tuple[str, str], int]:
    """(facet, slice) → its n, in the order of the table."""
    counts = table.groupby(["facet", "slice"], sort=False)["n"].max().reset_index()
    names = zip(counts["facet"], counts["slice"], strict=True)
    return dict(zip(names, counts["n"].astype(int), strict=True))


def _ends(tables: list[pd.DataFrame]) -> tuple[float, float]:
    """Of the x axis: all bounds, and 0, with some room."""
    bounds = np.concatenate([table[_BOUNDS].to_numpy(float).ravel() for table in tables])
    known = [0.0, *bounds[np.isfinite(bounds)]]
    room = 0.03 * (max(known) - min(known)) or 1.0
    return min(known) - room, max(known) + room


def _marks(
    axis: Axes,
    table: pd.DataFrame,
    lines: Mapping[tuple[str, str], int],
    shift: float,
    look: tuple[str, str],
) -> None:
    places = {name: place for place, name in enumerate(lines)}
    keys = table[["facet", "slice"]].itertuples(index=False, name=None)
    y = np.array([places[key] for key in keys], float) + shift
    color, marker = look
    axis.hlines(y, table["ci_low"], table["ci_high"], color=color, linewidth=1.3)
    failed = has_failures(table)
    for some, face in ((~failed, color), (failed, "white")):
        (drawn,) = axis.plot(table["value"][some], y[some], marker, color=color, markersize=5.5)
        drawn.set(markerfacecolor=face, zorder=3)
        drawn.set(markeredgewidth=1.4 if face == "white" else 0.5)  # a thick X is a blob


def _frame(axis: Axes, lines: Mapping[tuple[str, str], int], most: int) -> None:
    """The slices' names, rules between facets, and a line at 0."""
    names = list(lines)
    axis.set_yticks(range(len(names)), [f"{name[1]} ({lines[name]:,})" for name in names])
    axis.tick_params(axis="y", labelsize=9.5)
    axis.set_ylim(most - 0.5, -0.5)  # as long as the longest panel
    for place, name in enumerate(names):
        if place == 0 or name[0] != names[place - 1][0]:
            axis.axhline(place - 0.5, color=".75", linewidth=0.8)
            axis.text(
                1.01,
                place - 0.45,
                name[0].replace("_", " "),
                transform=axis.get_yaxis_transform(),
                rotation=270,
                ha="left",
                va="top",
                fontsize=9,
                fontstyle="italic",
                color=DARK,
            )
    axis.axvline(0, color=DARK, linewidth=1)
    axis.grid(axis="y", visible=False)


def _handles(colors: Mapping[str, str], settings: Mapping[str, str]) -> list[Line2D]:
    models = [
        Line2D([], [], color=color, linewidth=4, label=name) for name, color in colors.items()
    ]
    arms = [
        Line2D([], [], color=DARK, linestyle="", marker=marker, label=name)
        for name, marker in zip(settings.values(), cycle(MARKERS), strict=False)
    ]
    return [*models, *arms]
