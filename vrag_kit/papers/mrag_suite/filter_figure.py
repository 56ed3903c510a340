"""Figure of the questions that the filter keeps, and those dropped for each reason."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_suite.filter import EASY, KNOWN, VERBATIM
from vrag_kit.plotting.old_style import DARK, GREY, PALETTE, new_figure

_PARTS = {
    "n_kept": ("kept", PALETTE[0]),
    KNOWN: ("step 1: correct without evidence", PALETTE[1]),
    VERBATIM: ("step 1: answer in the question", PALETTE[4]),
    EASY: ("step 2: easiest of its domain", GREY),
}


def kept_figure(shares: pd.DataFrame) -> Figure:
    """Plots a bar per data set of all its questions (percent), split into kept and dropped by
    reason; diamonds are the shares that the paper keeps. `shares` comes from `kept_shares`.
    """
    rows = np.arange(len(shares))
    figure, ((axis,),) = new_figure(1, 1, (8.6, 2.2 + 0.42 * len(shares)))
    left = np.zeros(len(shares))
    for part, (said, color) in _PARTS.items():
        width = 100 * shares[part].to_numpy(float) / shares["n"].to_numpy(float)
        axis.barh(rows, width, 0.72, left=left, color=color, label=said)
        left += width
    if shares["published"].notna().any():
        look = {"color": DARK, "markeredgecolor": "white", "label": "kept: reported (Table 1)"}
        axis.plot(shares["published"], rows, "D", **look)
    names = shares["dataset"] + " (n = " + shares["n"].map("{:,}".format) + ")"
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.set(xlabel="questions (%)", xlim=(0, 100))
    axis.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return figure
