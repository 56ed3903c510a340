"""Figures of judge agreement: confusion matrices with human labels, and accuracy before and after
the correction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import setting_name
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure

Arm = tuple[str, str, int]
FEW = 15
"""The number of labels below which a corrected mean is drawn faint."""
_ARM = ["model", "setting", "k"]
_MARKS = {"uncorrected": "s", "corrected": "o"}


def agreement_figure(
    matrices: Mapping[str, pd.DataFrame], corrected: pd.DataFrame, name: str
) -> Figure:
    """Draws the confusion matrices (title → `confusion_matrix`) on the left, and the judge's mean
    and the corrected mean of every model and setting on the right, with 95 % intervals.

    `corrected` is `to_percent(corrected_accuracy(…))`. A corrected mean of fewer than
    `FEW` labels is faint; one that has no interval, for want of labels, is not drawn.
    """
    rows = corrected[_ARM].drop_duplicates()
    arms = list(zip(rows["model"], rows["setting"], rows["k"], strict=True))
    figure, (axes,) = new_figure(
        1,
        len(matrices) + 1,
        (3.5 * len(matrices) + 6.5, max(4.2, 0.5 * len(arms) + 1.4)),
        width_ratios=[1] * len(matrices) + [1.7],
    )
    for axis, (title, matrix) in zip(axes, matrices.items(), strict=False):
        draw_confusion_matrix(axis, title, matrix)
    _means(axes[-1], corrected, arms)
    axes[-1].set(title=f"{name} (n = {_range(corrected['n'])} answers each)")
    figure.supxlabel("Bars: 95 % intervals.", fontsize=9)
    return figure


def draw_confusion_matrix(
    axis: Axes,
    title: str,
    matrix: pd.DataFrame,
    *,
    counted: str = "answers",
    truth: str = "human label",
    predicted: str = "judge's label",
) -> None:
    """Draws a confusion matrix as a grid of counts, shaded by their share of all that is `counted`.
    Rows are true labels, columns predicted ones.
    """
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
            color="white" if count > 0.33 * total else DARK,
        )
    axis.set(title=f"{title}\n(n = {total} {counted})", xlabel=predicted, ylabel=truth)
    axis.set_xticks(range(matrix.shape[1]), matrix.columns)
    axis.set_yticks(range(matrix.shape[0]), matrix.index, rotation=90, va="center")
    axis.grid(False)


def _means(axis: Axes, corrected: pd.DataFrame, arms: Sequence[Arm]) -> None:
    """The judge's mean and the corrected mean of every arm, one below the other."""
    colors = model_colors(corrected["model"])
    for metric, shift in (("uncorrected", -0.14), ("corrected", 0.14)):
        rows = corrected[corrected["metric"] == metric].set_index(_ARM)
        for place, arm in enumerate(arms):
            row, color = rows.xs(arm), colors[arm[0]]
            below, above = row["value"] - row["ci_low"], row["ci_high"] - row["value"]
            whiskers = np.nan_to_num([[below], [above]])
            if metric == "uncorrected" or whiskers.any():
                axis.errorbar(
                    row["value"],
                    place + shift,
                    xerr=whiskers,
                    fmt=_MARKS[metric],
                    color=color,
                    markerfacecolor="white" if row["n_failed"] else color,
                    markersize=7,
                    linewidth=1.6,
                    alpha=0.3 if metric == "corrected" and row["n_labelled"] < FEW else 1.0,
                )
    axis.plot([], [], _MARKS["uncorrected"], color=DARK, label="uncorrected (judge)")
    axis.plot([], [], _MARKS["corrected"], color=DARK, label="corrected (prediction-powered)")
    if (corrected["n_failed"] > 0).any():
        axis.plot([], [], "o", color=DARK, markerfacecolor="white", label="some answers failed")
    labelled = corrected.groupby(_ARM)["n_labelled"].first()
    if (labelled < FEW).any():
        axis.plot([], [], "o", color=DARK, alpha=0.3, label=f"under {FEW} labels")
    names = [
        f"{arm[0].replace('field-guide-', '')}: {_arm(arm)}\n{labelled[arm]} labelled"
        for arm in arms
    ]
    axis.set_yticks(range(len(arms)), names, fontsize=9)
    axis.set(xlabel="Accuracy (%)", ylim=(len(arms) - 0.4, -0.6))
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(100.0, axis.get_xlim()[1]))
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize=9)


def _arm(arm: Arm) -> str:
    setting, k = arm[1:]
    name = setting_name(setting).split(" (")[0]
    return f"{name}, k = {k}" if k > 1 else name


def _range(values: pd.Series) -> str:
    fewest, most = values.min(), values.max()
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"
