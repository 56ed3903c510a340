"""Accuracy of each model in two or three variants over a number of images: solid,
dashed and dotted lines of one colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.style import DARK, colors_of, new_figure

_STYLES: tuple[Literal["-", "--", ":"], ...] = ("-", "--", ":")
_MARKERS = "o^s"


def variants_figure(
    sources: Mapping[str, pd.DataFrame],
    variants: Mapping[str, str],
    *,
    by: str,
    x: str,
    xlabel: str,
    levels: Mapping[str, str] | None = None,
) -> Figure:
    """One panel a source (title → table with model, `by`, `x`, value, ci_low, ci_high,
    n, in percent).

    `variants` maps the values of the column `by` to the names of their lines, `levels`
    likewise for what has no place on the x axis, such as zero-shot: it is a mark at the
    left edge. Bands are pointwise 95 % intervals where there are any.
    """
    tables = {
        title: table.assign(variant=table[by], at=table[x]) for title, table in sources.items()
    }
    ticks = {title: _ticks(table, variants) for title, table in tables.items()}
    widths = [max(2, len(places)) for places in ticks.values()]
    figure, axes = new_figure(
        1, len(sources), (4.6 + 0.55 * sum(widths), 4.9), width_ratios=widths, sharey=True
    )
    for axis, (title, table) in zip(axes[0], tables.items(), strict=True):
        colors = colors_of(table["model"])
        for model, rows in table.groupby("model", sort=False):
            _lines(axis, rows, list(variants), ticks[title], colors[str(model)])
            _levels(axis, rows, list(levels or {}), colors[str(model)])
        axis.set_xlim(-0.6, len(ticks[title]) - 0.6)
        axis.set_xticks(range(len(ticks[title])), [f"{tick:g}" for tick in ticks[title]])
        axis.set(title=panel_title(title, table), xlabel=xlabel, ylabel="accuracy (%)")
        axis.yaxis.set_tick_params(labelleft=True)
        _name_models(axis, colors)
    highest = max(float(table[["value", "ci_high"]].max().max()) for table in sources.values())
    axes[0][0].set_ylim(0, min(103.0, 1.1 * highest))
    names = _names_of(variants, levels or {})
    figure.legend(handles=names, loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _ticks(table: pd.DataFrame, variants: Mapping[str, str]) -> list[object]:
    """The places on the x axis: where a variant has a value."""
    return sorted(table["at"][table["variant"].isin(list(variants))].unique())


def _lines(
    axis: Axes, rows: pd.DataFrame, variants: Sequence[str], ticks: list[object], color: str
) -> None:
    """One model's variants, each with its band."""
    for variant, style in zip(variants, _STYLES, strict=False):
        line = rows[rows["variant"] == variant].sort_values("at")
        places = line["at"].map(ticks.index)
        axis.plot(places, line["value"], style, marker="o", markersize=5, color=color, linewidth=2)
        if line["ci_low"].notna().any():
            low, high = line["ci_low"], line["ci_high"]
            axis.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)


def _levels(axis: Axes, rows: pd.DataFrame, levels: Sequence[str], color: str) -> None:
    """One model's marks at the left edge."""
    for level, marker in zip(levels, _MARKERS, strict=False):
        value = rows.loc[rows["variant"] == level, "value"]
        _hollow(*axis.plot([-0.45] * len(value), value, marker, color=color, clip_on=False))


def _name_models(axis: Axes, colors: Mapping[str, str]) -> None:
    """The panel's legend: the color of each model."""
    axis.legend(
        handles=[
            Line2D([], [], color=color, linewidth=4, label=model) for model, color in colors.items()
        ],
        fontsize=9,
        loc="lower right",
        frameon=True,
        facecolor="white",
        framealpha=0.85,
        edgecolor="none",
    )


def _names_of(variants: Mapping[str, str], levels: Mapping[str, str]) -> list[Line2D]:
    """The figure's legend: the style of each variant, and the mark of each level."""
    styles = [
        Line2D([], [], color=DARK, linestyle=style, linewidth=2, label=name)
        for style, name in zip(_STYLES, variants.values(), strict=False)
    ]
    marks = [
        _hollow(Line2D([], [], color=DARK, marker=marker, linestyle="", label=name))
        for marker, name in zip(_MARKERS, levels.values(), strict=False)
    ]
    return [*styles, *marks]


def _hollow(mark: Line2D) -> Line2D:
    """The mark, large and white inside."""
    mark.set(markersize=8, markerfacecolor="white", markeredgewidth=1.8)
    return mark
