"""Figure of the modes of evidence: a panel per data set and stratum, each in its own metric."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.report_tables import setting_name
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_suite.datasets import metric_label
from vrag_kit.papers.mrag_suite.modes import ABSTENTION, ARMS
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import draw_categories, interval_note, wrap_title
from vrag_kit.plotting.old_style import model_colors, new_figure

_COLUMNS = 4


def modes_figure(means: pd.DataFrame) -> Figure:
    """Plots every model's mean by evidence shown, from none to gold only, then in custom settings,
    with 95 % intervals. Published numbers are not plotted: the paper does not state their metric.

    `means` are `to_percent(mode_means(…))`, of which the data sets' own metrics are plotted, by
    stratum if there are strata, without the pooled rows. Points are hollow where answers failed.
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
    labels = {**ARMS, **others}
    names = {
        setting: textwrap.fill(words, 10, break_long_words=False)
        for setting, words in labels.items()
    }
    for axis, ((dataset, metric, stratum), table) in zip(axes.flat, panels, strict=False):
        draw_categories(axis, table, names, "setting")
        title = str(dataset) if stratum == ALL else f"{dataset}, {stratum}"
        axis.set(title=wrap_title(panel_title(title, table), 3.4), ylim=(0, 103))
        axis.set_ylabel(f"{metric_label(str(metric))} (%)", fontsize=10)
        axis.tick_params(labelleft=True)
    handles = [
        Line2D([], [], color=color, linewidth=4, label=model)
        for model, color in model_colors(own["model"]).items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=10)
    figure.supxlabel(f"x: evidence shown. {interval_note([own])}", fontsize=9)
    return figure
