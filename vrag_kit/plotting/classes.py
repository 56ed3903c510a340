"""Figure of a judge's classes against labels: precision, recall and F1 of each."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.old_panels import dodge
from vrag_kit.plotting.old_style import GREY, PALETTE, new_figure

_STEP = 0.22


def class_metrics_figure(
    classes: pd.DataFrame, printed: pd.DataFrame | None = None, *, printed_is: str = ""
) -> Figure:
    """Draws one panel per class (`label`): its metrics in percent with 95 % intervals, each with
    its n. `printed` (label, metric, value) is drawn as grey ticks, which `printed_is` names.

    A class that was never labelled, or never predicted, has no mark there.
    """
    labels = list(dict.fromkeys(classes["label"]))
    metrics = list(dict.fromkeys(classes["metric"]))
    figure, (axes,) = new_figure(1, len(labels), (2.7 * len(labels) + 1.0, 4.2), sharey=True)
    for axis, label in zip(axes, labels, strict=True):
        table = classes[classes["label"] == label].set_index("metric").reindex(metrics)
        _bars(axis, table)
        if printed is not None:
            theirs = printed[printed["label"] == label].set_index("metric")["value"]
            y = theirs.reindex(metrics).to_numpy(float)
            x = np.arange(len(metrics)) + _STEP
            axis.plot(x, y, "_", color=GREY, markersize=13, markeredgewidth=2)
        counts = table["n"].fillna(0).astype(int)
        ticks = [f"{metric}\n({n:,})" for metric, n in counts.items()]
        axis.set_xticks(range(len(metrics)), ticks, fontsize=8.5)
        axis.set(title=label, xlim=(-0.6, len(metrics) - 0.4))
        axis.grid(axis="x", visible=False)
        axis.tick_params(labelleft=True)
    axes[0].set(ylabel="percent", ylim=(0, 103))
    note = (
        "Bars: 95 % intervals over questions, where there are any; below each metric its answers."
    )
    figure.supxlabel(note + (f" Grey: {printed_is}." if printed_is else ""), fontsize=9)
    return figure


def _bars(axis: Axes, table: pd.DataFrame) -> None:
    left, _ = dodge(2, 2 * _STEP)
    x = np.arange(len(table)) + left / 2
    axis.vlines(x, table["ci_low"], table["ci_high"], color=PALETTE[0], linewidth=1.4)
    axis.plot(x, table["value"], "o", color=PALETTE[0], markersize=7, clip_on=False, zorder=3)
