"""How many questions are flagged as ambiguous, by whom, and what the paper prints."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.plotting.marks import apart
from vrag_kit.plotting.style import DARK, PALETTE, new_figure


def flags_figure(flags: pd.DataFrame) -> Figure:
    """Flagged questions of each data set (percent, n), a bar an assessor with its 95 %
    interval; diamonds are what the paper prints of its own questions. `flags` as
    `flags_of` gives them.
    """
    names = list(dict.fromkeys(flags["dataset"]))
    assessors = list(dict.fromkeys(flags["assessor"]))
    height = 0.8 / len(assessors)
    size = (8.6, 1.8 + (0.3 + 0.2 * len(assessors)) * len(names))
    figure, ((axis,),) = new_figure(1, 1, size)
    rows = np.arange(len(names))
    for number, (shift, assessor) in enumerate(
        zip(apart(len(assessors), height), assessors, strict=True)
    ):
        part = flags[flags["assessor"] == assessor].set_index("dataset").reindex(names)
        color = PALETTE[number % len(PALETTE)]
        axis.barh(rows + shift, part["value"], 0.9 * height, color=color, label=assessor)
        axis.hlines(rows + shift, part["ci_low"], part["ci_high"], color=DARK, linewidth=1.2)
    one = flags.drop_duplicates("dataset").set_index("dataset").reindex(names)
    if one["paper"].notna().any():
        said = "as printed (Table 1), of the paper's questions"
        axis.plot(one["paper"], rows, "D", color=DARK, markeredgecolor="white", label=said)
    axis.set_yticks(rows, [f"{name} (n = {n:,})" for name, n in one["n"].items()])
    axis.invert_yaxis()
    axis.set(xlabel="flagged questions (%); bars: 95 % intervals", xlim=(0, 100))
    axis.grid(axis="y", visible=False)
    legend = figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    legend.set_title("flagged by")
    legend.get_title().set_fontsize(9)
    return figure
