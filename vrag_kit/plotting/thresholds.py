"""Figure of precision, recall and F1 over a similarity threshold."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.plotting.old_style import DARK, PALETTE, new_figure

_LINES = {"precision": "precision", "recall": "recall", "f1": "F1"}


def threshold_figure(curve: pd.DataFrame, marks: dict[str, float], of: str) -> Figure:
    """Draws precision, recall and F1, in percent, over the threshold; dashed lines at `marks` (name
    → threshold; NaN draws none).

    `curve` as `threshold_curve` gives it; `of` is the title, with n.
    """
    figure, ((axis,),) = new_figure(1, 1, (7.2, 4.2))
    for (column, name), color in zip(_LINES.items(), PALETTE, strict=False):
        axis.plot(curve["threshold"], 100 * curve[column], color=color, linewidth=2, label=name)
    styles = ("--", ":", "-.")
    known = {name: value for name, value in marks.items() if not np.isnan(value)}
    for (name, value), style in zip(known.items(), styles, strict=False):
        label = f"{name}: {value:.2f}"
        axis.axvline(value, color=DARK, linestyle=style, linewidth=1.3, label=label)
    axis.set(xlabel="similarity threshold", ylabel="percent", ylim=(0, 103), title=of)
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure
