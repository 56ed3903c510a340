"""What the filter drops of each data set and why, and what it keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_suite.difficulty_filter import EASY, KNOWN, VERBATIM
from vrag_kit.plotting.style import DARK, GREY, PALETTE, new_figure

_PARTS = {
    "kept": ("kept", PALETTE[0]),
    KNOWN: (f"step 1: {KNOWN}", PALETTE[1]),
    VERBATIM: (f"step 1: {VERBATIM}", PALETTE[4]),
    EASY: (f"step 2: {EASY}", GREY),
}


def kept_figure(shares: pd.DataFrame) -> Figure:
    """A bar a data set of all its questions (percent), in parts: kept, and dropped for
    each reason; diamonds are what the paper keeps of its own. `shares` as `kept_shares`
    gives them.
    """
    rows = np.arange(len(shares))
    figure, ((axis,),) = new_figure(1, 1, (8.6, 2.2 + 0.42 * len(shares)))
    left = np.zeros(len(shares))
    for part, (said, color) in _PARTS.items():
        width = 100 * shares[part].to_numpy(float) / shares["n"].to_numpy(float)
        axis.barh(rows, width, 0.72, left=left, color=color, label=said)
        left += width
    if shares["paper"].notna().any():
        said = "as printed (Table 1), of the paper's questions"
        axis.plot(
            shares["paper"], rows, "D", color=DARK, markeredgecolor="white", label=f"kept {said}"
        )
    names = shares["dataset"] + " (n = " + shares["n"].map("{:,}".format) + ")"
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.set(xlabel="questions (%)", xlim=(0, 100))
    axis.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return figure
