"""The modes of evidence as a picture: a panel a data set and stratum, each in its own
metric.
"""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.settings_table import setting_name
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_suite.modes import ABSTENTION, ARMS
from vrag_kit.papers.mrag_suite.own_metrics import metric_name
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.marks import draw_levels, fitted, note
from vrag_kit.plotting.style import colors_of, new_figure

_COLUMNS = 4


def modes_figure(means: pd.DataFrame) -> Figure:
    """Every model's mean above what it was shown, from nothing to gold alone, then in
    settings of one's own, with 95 % intervals. Nothing that a paper prints is drawn: it
    does not say in which metric its numbers are.

    `means` are `in_percent(mode_means(…))`, of which the own metrics are drawn, and
    strata where there are any, not what pools them. Points are hollow where answers
    failed.
    """
    own = means[means["metric"] != ABSTENTION]
    if "stratum" not in own:
        own = own.assign(stratum=ALL)
    told_apart = own.loc[own["stratum"] != ALL, "dataset"]
    own = own[(own["stratum"] != ALL) | ~own["dataset"].isin(told_apart)]
    panels = list(own.groupby(["dataset", "metric", "stratum"], sort=False))
    rows = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    figure, axes = new_figure(rows, columns, (3.7 * columns, 3.5 * rows + 0.9), sharey=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    others = {each: setting_name(each) for each in own["setting"].unique() if each not in ARMS}
    names = {setting: textwrap.fill(words, 12) for setting, words in {**ARMS, **others}.items()}
    for axis, ((dataset, metric, stratum), table) in zip(axes.flat, panels, strict=False):
        draw_levels(axis, table, names, "setting")
        title = str(dataset) if stratum == ALL else f"{dataset}, {stratum}"
        axis.set(title=fitted(panel_title(title, table), 3.4), ylim=(0, 103))
        axis.set_ylabel(f"{metric_name(str(metric))} (%)", fontsize=10)
        axis.tick_params(labelleft=True)
    handles = [
        Line2D([], [], color=color, linewidth=4, label=model)
        for model, color in colors_of(own["model"]).items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=10)
    figure.supxlabel(f"Across: what a model was shown. {note([own])}", fontsize=9)
    return figure
