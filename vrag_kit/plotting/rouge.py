"""ROUGE-1 recall against accuracy: one point an arm.

Ours and printed numbers go through the same function.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.settings_table import SETTING_NAMES
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.style import DARK, colors_of, new_figure

_MARKERS = {"zero_shot": "o", "gt_clue": "^", "non_clue": "X", "top_k": "s", "one_in_k": "D"}


def rouge_figure(sources: Mapping[str, pd.DataFrame]) -> Figure:
    """One panel a source (title → table with model, setting, k, metric "accuracy" or
    "rouge", value, ci_low, ci_high, n, in percent).

    A point is the mean of one model in one setting at one k: colours are models,
    markers settings. Thin lines are 95 % intervals, where there are any.
    """
    figure, axes = new_figure(1, len(sources), (5.8 * len(sources), 5.8))
    for axis, (title, table) in zip(axes[0], sources.items(), strict=True):
        _panel(axis, table)
        arms = len(table[["model", "setting", "k"]].drop_duplicates())
        axis.set(
            title=panel_title(f"{title}: {arms} arms", table),
            xlabel="Accuracy (%)",
            ylabel="ROUGE-1 recall (%)",
        )
    everything = pd.concat([table["setting"] for table in sources.values()])
    shown = [setting for setting in _MARKERS if (everything == setting).any()]
    names, handles = [SETTING_NAMES[setting] for setting in shown], []
    for setting in shown:
        handles += axes[0][0].plot([], [], _MARKERS[setting], color=DARK, markersize=7)
    figure.legend(handles, names, loc="outside lower center", ncols=len(shown), fontsize=9)
    return figure


def _panel(axis: Axes, table: pd.DataFrame) -> None:
    """The points of one source, with a legend of its models below."""
    colors = colors_of(table["model"])
    arm, numbers = ["model", "setting", "k"], ["value", "ci_low", "ci_high"]
    x = table.loc[table["metric"] == "accuracy", [*arm, *numbers]]
    y = table.loc[table["metric"] == "rouge", [*arm, *numbers]]
    for (model, setting), arms in x.merge(y, on=arm).groupby(["model", "setting"], sort=False):
        axis.errorbar(
            arms["value_x"],
            arms["value_y"],
            xerr=_whiskers(arms, "x"),
            yerr=_whiskers(arms, "y"),
            fmt=_MARKERS[str(setting)],
            color=colors[str(model)],
            markersize=8,
            markeredgecolor="white",
            markeredgewidth=0.5,
            elinewidth=0.6,
            alpha=0.9,
        )
    handles = [axis.plot([], [], "o", color=color)[0] for color in colors.values()]
    axis.legend(
        handles,
        colors,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=min(4, len(colors)),
        fontsize=9,
    )


def _whiskers(arms: pd.DataFrame, side: str) -> np.ndarray:
    """How far intervals reach below and above, shape (2, arms); 0 where there are none."""
    value = arms[f"value_{side}"]
    return np.nan_to_num([value - arms[f"ci_low_{side}"], arms[f"ci_high_{side}"] - value])
