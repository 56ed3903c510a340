"""Figure of the share of questions flagged as ambiguous, by detector, and the published share."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.plotting.old_panels import dodge
from vrag_kit.plotting.old_style import DARK, PALETTE, new_figure


def flag_rates_figure(flags: pd.DataFrame) -> Figure:
    """Plots the flagged questions of each data set (percent, n), a bar per detector with its 95 %
    interval; diamonds are the paper's shares of its own questions. `flags` comes from
    `flag_rates_by_detector`.
    """
    names = list(dict.fromkeys(flags["dataset"]))
    detectors = list(dict.fromkeys(flags["detector"]))
    height = 0.8 / len(detectors)
    size = (8.6, 1.8 + (0.3 + 0.2 * len(detectors)) * len(names))
    figure, ((axis,),) = new_figure(1, 1, size)
    rows = np.arange(len(names))
    for number, (shift, detector) in enumerate(
        zip(dodge(len(detectors), height), detectors, strict=True)
    ):
        part = flags[flags["detector"] == detector].set_index("dataset").reindex(names)
        color = PALETTE[number % len(PALETTE)]
        axis.barh(rows + shift, part["value"], 0.9 * height, color=color, label=detector)
        axis.hlines(rows + shift, part["ci_low"], part["ci_high"], color=DARK, linewidth=1.2)
    one = flags.drop_duplicates("dataset").set_index("dataset").reindex(names)
    if one["published"].notna().any():
        said = "reported (Table 1)"
        axis.plot(one["published"], rows, "D", color=DARK, markeredgecolor="white", label=said)
    axis.set_yticks(rows, [f"{name} (n = {n:,})" for name, n in one["n"].items()])
    axis.invert_yaxis()
    axis.set(xlabel="flagged questions (%); bars: 95 % intervals", xlim=(0, 100))
    axis.grid(axis="y", visible=False)
    legend = figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    legend.set_title("detector")
    legend.get_title().set_fontsize(9)
    return figure
