"""Correlation of ROUGE-1 recall with the judge's score, by answer and by arm (Visual-RAG appendix
E, Tables 14 and 16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.agreement import association
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


def rouge_score_correlation(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Rank correlation of rouge and score over the answers of every model: model,
    measure ("spearman", "kendall"), value in [−1, 1], ci_low, ci_high, n, n_failed.

    Intervals are over groups. n counts answers, n_failed those without a score or
    without ROUGE. NaN where one of the two never changes.
    """
    rows = []
    for model, part in judged.groupby("model", sort=False):
        for measure in ("spearman", "kendall"):
            found = association(
                part["rouge"], part["score"], part["group"], measure=measure, seed=seed
            )
            rows.append((model, measure, *found))
    columns = ["model", "measure", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def rouge_mean_correlation(arms: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Spearman's ρ of mean accuracy and mean ROUGE: `by`, value in [−1, 1], n arms.

    `by` ["model"] correlates within models, ["setting", "k"] across them.

    `arms` has the columns model, setting, k, metric ("accuracy", "rouge") and value, one row an arm
    and metric. NaN for fewer than three arms, and where a mean never changes. No interval: the arms
    share their questions, and published means do not account for that.
    """
    wide = arms.pivot_table(
        index=["model", "setting", "k"], columns="metric", values="value", sort=False
    )
    rows = []
    for key, part in wide.groupby(list(by), sort=False):
        rho = part[["accuracy", "rouge"]].corr("spearman", min_periods=3).iloc[0, 1]
        rows.append((*key, rho, len(part)))
    return pd.DataFrame(rows, columns=[*by, "value", "n"])


def rouge_figure(sources: Mapping[str, pd.DataFrame], *, title: str, caption: str) -> Figure:
    """Draws a panel for each source (title → table as in `rouge_mean_correlation`, with n): a point
    for each arm, its mean accuracy across and its mean ROUGE-1 recall up, in percent; hollow where
    answers failed. Each model has a colour and its ρ; more than six are grey, with the range of ρ.
    """
    figure, axes = new_figure(1, len(sources), height=2.9, sharex=True, sharey=True)
    drawn = []
    for axis, (name, table) in zip(axes.flat, sources.items(), strict=True):
        rho = rouge_mean_correlation(table, ["model"]).set_index("model")["value"]
        colors = model_colors(rho.index)
        notes = [
            (f"{display_name(each)}: ρ = {r:.2f}", colors[str(each)]) for each, r in rho.items()
        ]
        if len(rho) > 6:
            colors = dict.fromkeys(rho.index, REPORTED)
            notes = [(f"{len(rho)} models: ρ = {rho.min():.2f} to {rho.max():.2f}", DARK)]
        across, up = (table[table["metric"] == metric] for metric in ("accuracy", "rouge"))
        arms = across.merge(up[[*ARM, "value"]], on=ARM, suffixes=("", "_rouge"))
        drawn.append(arms.drop(columns=["ci_low", "ci_high"], errors="ignore"))
        for model, points in drawn[-1].groupby("model", sort=False):
            heights = points["value_rouge"].to_numpy(float)
            draw_interval(axis, heights, points, Series(colors[str(model)]), flat=True)
        for place, (note, color) in enumerate(notes):
            high = 0.04 + 0.07 * place if len(rho) <= 6 else 0.92
            look = {"color": color, "ha": "right", "transform": axis.transAxes}
            axis.text(0.97, high, note.replace("-0", "−0"), **look)
        axis.set_title(f"{name}\n{count_label(sorted(table['n'].unique()), 'questions')}")
        axis.set(xlim=(-3, 103), ylim=(-3, 103))
    figure.supxlabel("Accuracy (%); a point is one model in one setting", fontsize=8)
    figure.supylabel("ROUGE-1 recall (%)", fontsize=8)
    handles = interval_handles([arms.drop(columns="n") for arms in drawn])
    set_caption(figure, title, f"A point: a model in one setting at one k. {caption}", handles)
    return figure
