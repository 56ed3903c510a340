"""The modes of evidence as a picture: a panel a data set, each in its own metric."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.settings_table import setting_name
from vrag_kit.papers.mrag_suite.modes import ABSTENTION, ARMS
from vrag_kit.papers.mrag_suite.printed import printed_modes
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.marks import draw_levels, note
from vrag_kit.plotting.style import GREY, colors_of, new_figure

_COLUMNS = 4
_METRICS = {
    "normalised_em": "exact answers",
    "choice_accuracy": "right options",
    "relaxed_accuracy": "number within 5 %, else exact",
    "keypoint_coverage": "keypoints told",
    "webqa_f1": "WebQA's F1",
}
"""Names in the data → for people."""
_MEDIAN = 0.16  # half the width of its tick, in places of the axis


def modes_figure(means: pd.DataFrame) -> Figure:
    """Every model's mean above what it was shown, from nothing to gold alone, then in
    settings of one's own, with 95 % intervals; in grey what the paper's models reach on
    its data (Table 5): lowest, median and highest.

    `means` are `in_percent(mode_means(…))`, of which the own metrics are drawn. Points
    are hollow where answers failed.
    """
    own = means[means["metric"] != ABSTENTION]
    panels = list(own.groupby(["dataset", "metric"], sort=False))
    rows = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    figure, axes = new_figure(rows, columns, (3.7 * columns, 3.5 * rows + 0.9), sharey=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    paper = printed_modes()
    others = {each: setting_name(each) for each in own["setting"].unique() if each not in ARMS}
    names = {setting: textwrap.fill(words, 12) for setting, words in {**ARMS, **others}.items()}
    for axis, ((dataset, metric), table) in zip(axes.flat, panels, strict=False):
        _range(axis, paper[paper["dataset"] == dataset])
        draw_levels(axis, table, names, "setting")
        axis.set(title=panel_title(str(dataset), table), ylim=(0, 103))
        axis.set_ylabel(f"{_METRICS.get(str(metric), metric)} (%)", fontsize=10)
        axis.tick_params(labelleft=True)
    handles = [
        Line2D([], [], color=color, linewidth=4, label=model)
        for model, color in colors_of(own["model"]).items()
    ]
    label = "the paper's models on its data (Table 5): lowest, median, highest"
    handles.append(Line2D([], [], color=GREY, linewidth=5, alpha=0.45, label=label))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=10)
    figure.supxlabel(f"Across: what a model was shown. {note([own])}", fontsize=9)
    return figure


def _range(axis: Axes, paper: pd.DataFrame) -> None:
    """From the lowest printed number to the highest, with a tick at the median."""
    for place, setting in enumerate(ARMS):
        values = paper.loc[paper["setting"] == setting, "value"]
        if values.empty:
            continue
        axis.vlines(place, values.min(), values.max(), color=GREY, linewidth=5, alpha=0.45)
        axis.hlines(values.median(), place - _MEDIAN, place + _MEDIAN, color=GREY, linewidth=1.6)
