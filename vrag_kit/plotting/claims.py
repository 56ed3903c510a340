"""Figures of claims: metrics over pictures, texts and both, and what a checker's error does
to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.agreement import draw_matrix
from vrag_kit.plotting.marks import Look, apart, draw_means, note, point_size
from vrag_kit.plotting.style import DARK, colors_of, new_figure

Metric = tuple[str, str]
"""Family and metric."""
_MARKS = {"image": "o", "text": "s", "all": "D"}
_SHOWN = {"image": "pictures alone", "text": "texts alone", "all": "all that was shown"}
_LABELS = {"checker": "s", "corrected": "o", "true": "D"}
_SAID = {
    "checker": "by the checker's labels",
    "corrected": "corrected by the labelled answers",
    "true": "by true labels of all answers",
}
_SHORT = {"ENTAILMENT": "entails", "NEUTRAL": "neutral", "CONTRADICTION": "contradicts"}
_SHORT |= {"unreadable": "unread"}
_STEP = 0.22


def claims_figure(
    means: pd.DataFrame, metrics: Mapping[Metric, str], settings: Mapping[str, str]
) -> Figure:
    """A row a data set, a column a metric ((family, metric) → its name): a mean above
    each setting (setting → its name), over pictures, over texts and over both side by
    side, with 95 % intervals.

    `means` is `in_percent(claim_means_apart(…))` with the columns dataset, model and
    setting. A panel without any value says so.
    """
    datasets = list(dict.fromkeys(means["dataset"]))
    size = (3.1 * len(metrics) + 0.6, 2.5 * len(datasets) + 1.4)
    figure, axes = new_figure(len(datasets), len(metrics), size, sharey=True)
    for row, dataset in zip(axes, datasets, strict=True):
        part = means[means["dataset"] == dataset]
        for axis, (metric, name) in zip(row, metrics.items(), strict=True):
            own = part[(part["family"] == metric[0]) & (part["metric"] == metric[1])]
            _levels(axis, own, settings)
            axis.set_title(name if dataset == datasets[0] else "")
        row[0].set(ylabel=f"{dataset}\nmean (%)", ylim=(-4, 104))
    _legend(figure, axes[0][0], colors_of(means["model"]), _MARKS, _SHOWN)
    wanted = pd.MultiIndex.from_frame(means[["family", "metric"]]).isin(list(metrics))
    n = means[wanted & (means["n"] > 0)]["n"]
    words = f"n = {_range(n)} questions a mark; they differ by what has a value (CSV)"
    figure.suptitle(f"{note([means[wanted]])} {words}", fontsize=9)
    return figure


def checker_figure(
    confusions: Mapping[str, pd.DataFrame], beside: pd.DataFrame, names: Mapping[Metric, str]
) -> Figure:
    """Above the confusion matrices (title → `verdict_confusion`), below a panel a data
    set: each metric ((metric, modality) → its name) by the checker's labels, corrected by
    those of a sample, and by true ones, with 95 % intervals.

    `beside` has dataset, model, metric, modality, labels ("checker", "corrected",
    "true"), value, ci_low, ci_high, n and n_labelled, in percent, of one setting.
    """
    datasets = list(dict.fromkeys(beside["dataset"]))
    columns = max(len(confusions), len(datasets))
    height = 0.62 * len(names) * beside["model"].nunique() + 1.4
    figure, axes = new_figure(2, columns, (4.9 * columns, 4.2 + height), sharey="row")
    for axis, (title, matrix) in zip(axes[0], confusions.items(), strict=False):
        short = matrix.rename(index=_SHORT, columns=_SHORT)
        draw_matrix(axis, title, short, counted="verdicts", truth="truth")
    for axis, dataset in zip(axes[1], datasets, strict=False):
        _beside(axis, beside[beside["dataset"] == dataset], names)
        axis.set(title=dataset, xlabel="mean (%)", xlim=(-4, 104))
    for axis in [*axes[0][len(confusions) :], *axes[1][len(datasets) :]]:
        axis.set_axis_off()
    _legend(figure, axes[1][0], colors_of(beside["model"]), _LABELS, _SAID)
    drawn = pd.MultiIndex.from_frame(beside[["metric", "modality"]]).isin(list(names))
    told = beside[drawn & (beside["n"] > 0)]
    labelled = told[told["labels"] == "corrected"]["n_labelled"]
    words = f"n = {_range(told['n'])} answers a mark, {_range(labelled)} of them labelled"
    words += "; unread: without a verdict that could be read"
    figure.suptitle(f"Bars: 95 % intervals; {words}", fontsize=9)
    return figure


def _levels(axis: Axes, table: pd.DataFrame, settings: Mapping[str, str]) -> None:
    """Means above each setting, models and modalities side by side."""
    colors = colors_of(table["model"])
    arms = list(product(colors, _MARKS))
    steps = apart(len(arms), min(_STEP, 0.8 / max(1, len(arms))))
    for step, (model, shown) in zip(steps, arms, strict=True):
        rows = table[(table["model"] == model) & (table["modality"] == shown)]
        rows = rows.set_index("setting").reindex(list(settings)).reset_index()
        x = np.arange(len(settings)) + step
        size = point_size(len(colors))
        draw_means(
            axis, x, rows.fillna({"n_failed": 0}), Look(colors[model], _MARKS[shown], size=size)
        )
    if table["value"].isna().all():
        axis.text(0.5, 0.5, "no value", transform=axis.transAxes, ha="center", color=DARK)
    axis.set_xticks(range(len(settings)), list(settings.values()), fontsize=9)
    axis.set_xlim(-0.6, len(settings) - 0.4)
    axis.grid(axis="x", visible=False)


def _beside(axis: Axes, table: pd.DataFrame, names: Mapping[Metric, str]) -> None:
    """A line a metric and model, with its three means one below the other."""
    colors = colors_of(table["model"])
    lines = list(product(names, colors))
    for place, (metric, model) in enumerate(lines):
        own = table[(table["metric"] == metric[0]) & (table["modality"] == metric[1])]
        for shift, (labels, marker) in zip(apart(3, 0.24), _LABELS.items(), strict=True):
            row = own[(own["model"] == model) & (own["labels"] == labels)]
            y = np.full(len(row), place + shift)
            axis.hlines(y, row["ci_low"], row["ci_high"], color=colors[model], linewidth=1.4)
            face = "white" if labels == "checker" else colors[model]
            axis.plot(
                row["value"], y, marker, color=colors[model], markerfacecolor=face, markersize=6
            )
    said = [", ".join(each) for each in product(names.values(), colors)]
    if len(colors) == 1:
        said = list(names.values())
    axis.set_yticks(range(len(lines)), said, fontsize=9)
    axis.set_ylim(len(lines) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


def _legend(
    figure: Figure,
    axis: Axes,
    colors: Mapping[str, str],
    marks: Mapping[str, str],
    said: Mapping[str, str],
) -> None:
    for model, color in colors.items():
        axis.plot([], [], color=color, linewidth=4, label=model)
    for name, marker in marks.items():
        face = "white" if name == "checker" else DARK
        axis.plot([], [], marker, color=DARK, markerfacecolor=face, label=said[name])
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)


def _range(counts: pd.Series) -> str:
    if not len(counts):
        return "0"
    fewest, most = int(counts.min()), int(counts.max())
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"
