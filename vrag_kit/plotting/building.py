"""Figure of how a benchmark was built: what remains after each step, and clue rates by the filter
and by annotators.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vrag_kit.plotting.old_style import CLUE, DARK, GREY, PALETTE, new_figure

_COLORS = {"species": GREY, "questions": PALETTE[0]}
_STATUSES = {
    "kept": (CLUE, "o"),
    "too_common": (PALETTE[1], "s"),
    "no_clue": (GREY, "X"),
    "dropped_by_filter": (PALETTE[4], "D"),
}


def funnel_figure(steps: pd.DataFrame, decisions: pd.DataFrame, limit: float, name: str) -> Figure:
    """Draws the remaining species and questions as bars, each kind on an axis of its own. Each
    annotated question is a point, with the limit on its clue rate dashed, unless the coarse filter
    saw none of them. The tables are of `question_funnel` and `decisions_table`.
    """
    labelled = decisions[decisions["estimated_clue_rate"].notna() & decisions["clue_rate"].notna()]
    labelled = labelled[labelled["status"].isin(list(_STATUSES))]
    if len(labelled):
        figure, (axes,) = new_figure(1, 3, (14, 4.8), width_ratios=(0.75, 1, 1.1))
        _rates(axes[2], labelled, limit)
    else:
        figure, (axes,) = new_figure(1, 2, (9.5, 4.8), width_ratios=(0.75, 1))
    for axis, (what, color) in zip(axes, _COLORS.items(), strict=False):
        part = steps[steps["unit_of_n"] == what]
        bars = axis.barh(part["step"], part["n"], color=color, height=0.7)
        axis.bar_label(bars, padding=3, fontsize=9)
        axis.set(title=f"{what.capitalize()} after each step", xlabel=f"number of {what}")
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.margins(x=0.12)
    dropped = int((labelled["status"] == "dropped_by_filter").sum())
    words = (
        f"; at right the {len(labelled)} that both the coarse filter and annotators\nlooked at,"
        f" {dropped} of them dropped by the filter; dashed: the limit of {100 * limit:g} %; grey"
        " line: identity"
        if len(labelled)
        else "; none has a clue rate by both a coarse filter and annotators"
    )
    figure.supxlabel(f"{name}: n = {len(decisions)} questions written{words}", fontsize=9)
    return figure


def _rates(axis: Axes, labelled: pd.DataFrame, limit: float) -> None:
    """Clue rates in percent: the filter's estimate across, the annotators' upwards."""
    for status, (color, marker) in _STATUSES.items():
        part = labelled[labelled["status"] == status]
        if len(part):
            axis.plot(
                100 * part["estimated_clue_rate"],
                100 * part["clue_rate"],
                marker,
                color=color,
                markersize=8,
                markeredgecolor="white",
                markeredgewidth=0.6,
                alpha=0.9,
                label=f"{status.replace('_', ' ')} ({len(part)})",
            )
    for line in (axis.axhline, axis.axvline):
        line(100 * limit, color=DARK, linestyle="--", linewidth=1)
    axis.axline((0, 0), slope=1, color="#C8C8C8", linewidth=1, zorder=0)
    highest = 100 * max([limit, *labelled["estimated_clue_rate"], *labelled["clue_rate"]]) + 4
    axis.set(
        title="Clue rate, by the filter and by annotators",
        xlabel="clue rate, coarse filter (%)",
        ylabel="clue rate, annotators (%)",
        xlim=(-2, highest),
        ylim=(-2, highest),
        aspect="equal",
    )
    axis.legend(title="", loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
