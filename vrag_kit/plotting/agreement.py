"""Confusion matrices of human labels and a judge's."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from vrag_kit.plotting.old_style import DARK

FEW = 15
"""Means of fewer cases are drawn faint."""


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
