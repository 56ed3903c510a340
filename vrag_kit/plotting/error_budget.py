"""Lost points by cause, stacked over the number of images."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vrag_kit.analysis.error_budget import CAUSES
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.style import DARK, GREY, PALETTE, new_figure

_COLORS = dict(
    zip(CAUSES, (PALETTE[0], "#BFD9EC", PALETTE[4], PALETTE[2], PALETTE[3], GREY), strict=True)
)
_COLUMNS = 2
_WIDTH = 0.8


def budget_figure(budget: pd.DataFrame) -> Figure:
    """One panel a model: for each k a bar of the points lost to each cause, in percent;
    what is white up to 100 is accuracy. Takes `in_percent(mean_budget(…))`.

    A whisker is the 95 % interval of its own segment, counted from the segment's base.
    Causes to which no point is lost are not drawn.
    """
    models = list(dict.fromkeys(budget["model"]))
    lost = budget.groupby("cause")["value"].max()
    causes = [cause for cause in _COLORS if lost.get(cause, 0.0) > 0]
    columns = min(_COLUMNS, len(models))
    rows = -(-len(models) // columns)
    figure, axes = new_figure(
        rows, columns, (max(7.0, 5.2 * columns), 4.2 * rows + 0.9), sharey=True
    )
    for axis in axes.flat[len(models) :]:
        axis.axis("off")
    for axis, model in zip(axes.flat, models, strict=False):
        table = budget[budget["model"] == model]
        _bars(axis, table, causes)
        axis.set(
            title=panel_title(model, table),
            xlabel="images shown, the first k retrieved",
            ylabel="points lost a question (of 100)",
            ylim=(0, 100),
        )
        axis.grid(axis="x", visible=False)
        axis.yaxis.set_tick_params(labelleft=True)
    handles = [Patch(color=_COLORS[cause], label=cause) for cause in causes]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9)
    figure.supxlabel(
        "A whisker is the 95 % interval of its own segment, counted from the segment's base.",
        fontsize=9,
    )
    return figure


def _bars(axis: Axes, table: pd.DataFrame, causes: list[str]) -> None:
    """One model's bars, the causes one upon the other, each with its whisker."""
    ticks = sorted(table["k"].unique())
    places = pd.Series(range(len(ticks)), ticks, dtype=float)
    bottom = pd.Series(0.0, ticks)
    for number, cause in enumerate(causes):
        part = table[table["cause"] == cause].set_index("k").reindex(ticks)
        axis.bar(places, part["value"], _WIDTH, bottom, color=_COLORS[cause])
        drawn = part["value"] > 0
        axis.vlines(
            (places + _WIDTH * ((number + 0.5) / len(causes) - 0.5))[drawn],
            (bottom + part["ci_low"])[drawn],
            (bottom + part["ci_high"])[drawn],
            color=DARK,
            linewidth=1.3,
        )
        bottom = bottom + part["value"].fillna(0.0)
    axis.set_xticks(places, [str(k) for k in ticks])
