"""Figure 2 of the paper, and the accuracy of guessing from option format alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_bench.results import CHANCE, OVERALL
from vrag_kit.plotting.old_style import DARK, GREY, PALETTE, new_figure
from vrag_kit.types import Benchmark

_TITLES = {
    "original": "Original options",
    "normalised": "Normalised options",
    "planted": "Format cue planted",
}


def statistics_figure(
    shares: pd.DataFrame, guessed: dict[str, pd.DataFrame], benchmark: Benchmark
) -> Figure:
    """Plots the share of each scenario (left), the paper's as diamonds, and the accuracy from
    option format alone (right). There is a panel for each of `guessed` (title → table with
    scenario, value, ci_low, ci_high, n, all in percent).

    `shares` comes from `distribution`.
    """
    figure, (axes,) = new_figure(1, 1 + len(guessed), (4.4 + 4.2 * len(guessed), 4.6))
    _shares(axes[0], shares)
    order = [*shares["scenario"], OVERALL]
    for axis, (title, table) in zip(axes[1:], guessed.items(), strict=True):
        _guessed(axis, table.set_index("scenario").reindex(order), title)
    figure.supxlabel(
        f"{benchmark.name}: n = {shares['n'].sum()} questions, in brackets by scenario; bars:"
        f" 95 % intervals over {benchmark.groups_are}; dashed: chance",
        fontsize=9,
    )
    return figure


def _shares(axis: Axes, shares: pd.DataFrame) -> None:
    rows = np.arange(len(shares))
    aspects = {name: PALETTE[place] for place, name in enumerate(shares["aspect"].unique())}
    for aspect, color in aspects.items():
        part = (shares["aspect"] == aspect).to_numpy()
        total = shares["share"][part].sum()
        label = f"{aspect} ({total:.1f} %)"
        axis.barh(rows[part], shares["share"][part], 0.7, color=color, label=label)
    axis.plot(shares["published"], rows, "D", color=DARK, markersize=5, label="reported (Figure 2)")
    names = [f"{name} ({n})" for name, n in zip(shares["scenario"], shares["n"], strict=True)]
    axis.set_yticks(rows, names, fontsize=10)
    axis.invert_yaxis()
    axis.set(title="Question type", xlabel="share of questions (%)")
    axis.grid(axis="y", visible=False)
    axis.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)


def _guessed(axis: Axes, table: pd.DataFrame, title: str) -> None:
    rows = np.arange(len(table))
    axis.barh(rows, table["value"], 0.7, color=np.where(table.index == OVERALL, DARK, GREY))
    axis.hlines(rows, table["ci_low"], table["ci_high"], color=PALETTE[1], linewidth=1.6)
    axis.axvline(CHANCE, color=DARK, linestyle="--", linewidth=1)
    axis.set_yticks(rows, table.index, fontsize=10)
    axis.invert_yaxis()
    axis.set(
        title=_TITLES.get(title, title),
        xlabel="accuracy from option format alone (%)",
        xlim=(0, 103),
    )
    axis.grid(axis="y", visible=False)
