"""Correlation of mean ROUGE-1 recall with mean accuracy (Visual-RAG appendix E, Tables 14 and
16).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.means import ARM
from vrag_kit.plotting.panels import Series, draw_interval, interval_handles
from vrag_kit.plotting.style import (
    DARK,
    REPORTED,
    count_label,
    display_name,
    model_colors,
    new_figure,
    set_caption,
)


def rouge_mean_correlation(arms: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Spearman's ρ of mean accuracy and mean ROUGE, indexed by `by`: value in [−1, 1], n arms.

    `by` ["source", "model"] correlates within models, ["source", "setting", "k"] across them.

    `arms` has the columns source, model, setting, k, metric ("accuracy", "rouge") and value, one
    row per arm and metric. NaN for fewer than three arms, and where a mean never changes. No
    interval: the arms share their questions, and published means do not account for that.
    """
    wide = arms.pivot_table("value", ["source", *ARM], "metric", sort=False)
    groups = wide.groupby(list(by), sort=False)
    pairs = groups[["accuracy", "rouge"]].corr("spearman", min_periods=3)
    rho = pairs.xs("rouge", level="metric")["accuracy"]
    return pd.DataFrame({"value": rho, "n": groups.size()}).reindex(groups.size().index)


def rouge_figure(arms: pd.DataFrame, *, title: str, caption: str) -> Figure:
    """Draws a panel for each `source` of `arms` (as in `rouge_mean_correlation`, with n): a point
    for each arm, its mean accuracy across and its mean ROUGE-1 recall up, in percent; hollow where
    answers failed. Each model has a colour and its ρ; more than six are grey, with the range of ρ.
    """
    sources = dict(list(arms.groupby("source", sort=False)))
    correlations = rouge_mean_correlation(arms, ["source", "model"])["value"]
    figure, axes = new_figure(1, len(sources), height=2.9, sharex=True, sharey=True)
    drawn = []
    for axis, (name, table) in zip(axes.flat, sources.items(), strict=True):
        rho = correlations[name]
        colors = model_colors(rho.index)
        notes = [
            (f"{display_name(each)}: ρ = {r:.2f}", colors[str(each)]) for each, r in rho.items()
        ]
        if len(rho) > 6:
            colors = dict.fromkeys(rho.index, REPORTED)
            notes = [(f"{len(rho)} models: ρ = {rho.min():.2f} to {rho.max():.2f}", DARK)]
        across, up = (table[table["metric"] == metric] for metric in ("accuracy", "rouge"))
        points = across.merge(up[[*ARM, "value"]], on=ARM, suffixes=("", "_rouge"))
        drawn.append(points.drop(columns=["ci_low", "ci_high"], errors="ignore"))
        for model, mine in drawn[-1].groupby("model", sort=False):
            heights = mine["value_rouge"].to_numpy(float)
            draw_interval(axis, heights, mine, Series(colors[str(model)]), flat=True)
        for place, (note, color) in enumerate(notes):
            high = 0.04 + 0.07 * place if len(rho) <= 6 else 0.92
            look = {"color": color, "ha": "right", "transform": axis.transAxes}
            axis.text(0.97, high, note.replace("-0", "−0"), **look)
        axis.set_title(f"{name!s}\n{count_label(sorted(table['n'].unique()), 'questions')}")
        axis.set(xlim=(-3, 103), ylim=(-3, 103))
    figure.supxlabel("Accuracy (%); a point is one model in one setting", fontsize=8)
    figure.supylabel("ROUGE-1 recall (%)", fontsize=8)
    handles = interval_handles([each.drop(columns="n") for each in drawn])
    set_caption(figure, title, f"A point: a model in one setting at one k. {caption}", handles)
    return figure
