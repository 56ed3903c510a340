"""Figures of a benchmark: question types, organism groups, and clues per query."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vrag_kit.plotting.old_style import DARK, PALETTE, new_figure


def benchmark_figure(shares: pd.DataFrame, queries: pd.DataFrame, name: str) -> Figure:
    """Plots Figure 2 of the paper and a histogram of clues per query. Takes `distribution` and
    `query_table` of a benchmark.
    """
    import seaborn as sns

    figure, (axes,) = new_figure(1, 3, (12.5, 3.9))
    for axis, (facet, title), color in zip(
        axes, (("organism", "Organism group"), ("question", "Question type")), PALETTE, strict=False
    ):
        part = shares[shares["facet"] == facet]
        sns.barplot(part, x="share", y="label", color=color, ax=axis)
        labels = [
            f" {share:.1f} % ({n})" for share, n in zip(part["share"], part["n"], strict=True)
        ]
        axis.bar_label(axis.containers[0], labels=labels, fontsize=9)
        axis.set(title=title, xlabel="share of queries (%)", ylabel="")
        axis.set_xlim(0, 1.35 * shares["share"].max())
    sns.histplot(
        queries,
        x="clues",
        bins=range(0, int(queries["clues"].max()) + 4, 3),
        color=PALETTE[2],
        ax=axes[2],
    )
    axes[2].axvline(queries["clues"].mean(), color=DARK, linestyle="--", linewidth=1.2)
    axes[2].set(
        title="Clue images per query",
        xlabel=f"clue images (mean {queries['clues'].mean():.1f}, dashed)",
        ylabel="queries",
    )
    axes[2].yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel(
        f"{name}: n = {len(queries)} queries on {queries['entity'].nunique()} species; in"
        " brackets the number of queries; a bar of the histogram holds three numbers of clues",
        fontsize=9,
    )
    return figure
