"""How a benchmark was made: what is left after each step, and the coarse filter's clue
rates beside the annotators'.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vrag_kit.plotting.style import CLUE, DARK, GREY, PALETTE, new_figure

_COLORS = {"species": GREY, "questions": PALETTE[0]}
_FATES = {
    "kept": (CLUE, "o"),
    "too common": (PALETTE[1], "s"),
    "no clue": (GREY, "X"),
    "dropped by the filter": (PALETTE[4], "D"),
}


def building_figure(
    steps: pd.DataFrame, decisions: pd.DataFrame, limit: float, name: str
) -> Figure:
    """Bars of the species and of the questions that are left, each kind on an axis of
    its own, and a point for each question that was annotated, with the limit on its
    clue rate dashed, unless the coarse filter looked at none of those; from `funnel` and
    `decisions_table`.
    """
    labelled = decisions[decisions["estimated"].notna() & decisions["clue_rate"].notna()]
    labelled = labelled[labelled["fate"].isin(list(_FATES))]
    if len(labelled):
        figure, (axes,) = new_figure(1, 3, (14, 4.8), width_ratios=(0.75, 1, 1.1))
        _rates(axes[2], labelled, limit)
    else:
        figure, (axes,) = new_figure(1, 2, (9.5, 4.8), width_ratios=(0.75, 1))
    for axis, (what, color) in zip(axes, _COLORS.items(), strict=False):
        part = steps[steps["what"] == what]
        bars = axis.barh(part["step"], part["n"], color=color, height=0.7)
        axis.bar_label(bars, padding=3, fontsize=9)
        axis.set(title=f"{what.capitalize()} left after each step", xlabel=f"number of {what}")
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.margins(x=0.12)
    dropped = int((labelled["fate"] == "dropped by the filter").sum())
    words = (
        f"; at right the {len(labelled)} that both the coarse filter and annotators\nlooked at,"
        f" {dropped} of them dropped by the filter; dashed: the limit of {100 * limit:g} %; grey"
        " line: both say the same"
        if len(labelled)
        else "; none has a clue rate by both a coarse filter and annotators"
    )
    figure.supxlabel(f"{name}: n = {len(decisions)} questions written{words}", fontsize=9)
    return figure


def _rates(axis: Axes, labelled: pd.DataFrame, limit: float) -> None:
    """Clue rates in percent: the filter's estimate across, the annotators' upwards."""
    for fate, (color, marker) in _FATES.items():
        part = labelled[labelled["fate"] == fate]
        if len(part):
            axis.plot(
                100 * part["estimated"],
                100 * part["clue_rate"],
                marker,
                color=color,
                markersize=8,
                markeredgecolor="white",
                markeredgewidth=0.6,
                alpha=0.9,
                label=f"{fate} ({len(part)})",
            )
    for line in (axis.axhline, axis.axvline):
        line(100 * limit, color=DARK, linestyle="--", linewidth=1)
    axis.axline((0, 0), slope=1, color="#C8C8C8", linewidth=1, zorder=0)
    highest = 100 * max([limit, *labelled["estimated"], *labelled["clue_rate"]]) + 4
    axis.set(
        title="Clue rate, by the filter and by annotators",
        xlabel="images that show it, by the coarse filter (%)",
        ylabel="images that show it, by annotators (%)",
        xlim=(-2, highest),
        ylim=(-2, highest),
        aspect="equal",
    )
    axis.legend(title="", loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
