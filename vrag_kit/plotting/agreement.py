"""Figures about the judge: where it disagrees with people, and accuracy before and
after the correction.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.settings_table import SETTING_NAMES
from vrag_kit.plotting.style import colors_of, new_figure


def agreement_figure(
    matrices: Mapping[str, pd.DataFrame], corrected: pd.DataFrame, name: str
) -> Figure:
    """Left the confusion matrices (title → `confusion`), right the judge's mean and the
    corrected mean of every model and setting, with 95 % intervals.

    `corrected` is `in_percent(corrected_accuracy(…))`. A corrected mean that has no
    interval, for want of labels, is not drawn.
    """
    arms = list(
        dict.fromkeys(corrected[["model", "setting", "k"]].itertuples(index=False, name=None))
    )
    figure, (axes,) = new_figure(
        1,
        len(matrices) + 1,
        (3.5 * len(matrices) + 6.5, max(4.2, 0.5 * len(arms) + 1.4)),
        width_ratios=[1] * len(matrices) + [1.7],
    )
    for axis, (title, matrix) in zip(axes, matrices.items(), strict=False):
        _matrix(axis, title, matrix)
    axis, colors = axes[-1], colors_of(corrected["model"])
    for metric, shift, face in (("judge", -0.14, "white"), ("corrected", 0.14, None)):
        rows = corrected[corrected["metric"] == metric].set_index(["model", "setting", "k"])
        for place, arm in enumerate(arms):
            row, color = rows.loc[arm], colors[arm[0]]
            whiskers = np.nan_to_num(
                [[row["value"] - row["ci_low"]], [row["ci_high"] - row["value"]]]
            )
            if metric == "judge" or whiskers.any():
                axis.errorbar(
                    row["value"],
                    place + shift,
                    xerr=whiskers,
                    fmt="o",
                    color=color,
                    markerfacecolor=face or color,
                    markersize=7,
                    linewidth=1.6,
                )
    axis.plot([], [], "o", color="#3B3B3B", markerfacecolor="white", label="judge's mean")
    axis.plot([], [], "o", color="#3B3B3B", label="corrected by labels")
    labelled = corrected.groupby(["model", "setting", "k"])["n_labelled"].first()
    axis.set_yticks(
        range(len(arms)),
        [
            f"{arm[0].replace('field-guide-', '')}: {_arm(arm)}\n{labelled[arm]} labelled"
            for arm in arms
        ],
        fontsize=9,
    )
    axis.set(
        title=f"{name} (n = {_range(corrected['n'])} answers each)",
        xlabel="Accuracy (%)",
        ylim=(len(arms) - 0.4, -0.6),
    )
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(100.0, axis.get_xlim()[1]))
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9)
    return figure


def _matrix(axis: Axes, title: str, matrix: pd.DataFrame) -> None:
    """Counts in a grid, shaded by their share of all answers."""
    total = int(matrix.to_numpy().sum())
    axis.imshow(matrix / max(total, 1), cmap="Blues", vmin=0, vmax=0.6)
    for (row, column), count in np.ndenumerate(matrix.to_numpy()):
        axis.text(
            column,
            row,
            str(count),
            ha="center",
            va="center",
            fontsize=13,
            color="white" if count > 0.33 * total else "#3B3B3B",
        )
    axis.set(title=f"{title}\n(n = {total} answers)", xlabel="judged as", ylabel="labelled as")
    axis.set_xticks(range(3), matrix.columns)
    axis.set_yticks(range(3), matrix.index, rotation=90, va="center")
    axis.grid(False)


def _arm(arm: tuple[str, str, int]) -> str:
    _, setting, k = arm
    return SETTING_NAMES.get(setting, setting).split(" (")[0] + (f", k = {k}" if k > 1 else "")


def _range(values: pd.Series) -> str:
    return (
        f"{values.min()}" if values.min() == values.max() else f"{values.min()} to {values.max()}"
    )
