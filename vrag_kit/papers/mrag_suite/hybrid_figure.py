"""Figure of retrieval on a suite: single retrievers, and the gain of fusion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_suite.hybrid import ALL
from vrag_kit.plotting.old_panels import dodge
from vrag_kit.plotting.old_style import DARK, REFERENCES, model_colors, new_figure

_KINDS = {"image": "images", "text": "texts"}
Line = tuple[str, str]
"""(data set, modality)."""


def hybrid_figure(results: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """Plots a metric of every retriever by data set and modality with n (left), and the gain of
    fusion over each in points (right). The last rows are all data sets pooled.

    `results` are metric means in percent (`to_percent`) of one metric, with dataset, modality and
    retriever; `gains` are `to_percent(fusion_gains(…))` of the same. A row without a fused run has
    no gain. Bars are 95 % intervals; the random order is a grey tick.
    """
    known = results[results["n"] > 0]
    pooled = gains[gains["dataset"] == ALL]
    lines = {**_lines(known), **_lines(pooled)}
    places = {line: place for place, line in enumerate(lines)}
    colors = model_colors(known.loc[~known["retriever"].isin(list(REFERENCES)), "retriever"])
    size = (13.5, 0.52 * len(lines) + 2.0)
    figure, (axes,) = new_figure(1, 2, size, sharey=True)
    _marks(axes[0], known, "retriever", places, colors)
    _marks(axes[1], gains, "baseline", places, colors)
    chance = known[known["retriever"] == "random order"]
    rows = _rows(chance, places)
    axes[0].vlines(chance["value"], rows - 0.35, rows + 0.35, color=REFERENCES["random order"])
    told = f"{known['metric'].iloc[0]} of the first k = "
    told += " or ".join(map(str, sorted(known["k"].unique())))
    axes[0].set(title="Single retrievers and fusion", xlabel=f"{told} (%)", xlim=(0, 103))
    axes[1].set(title="Fusion − single retriever", xlabel=f"difference in {told} (points)")
    axes[1].axvline(0, color=DARK, linewidth=1)
    _frame(axes, lines, len(lines) - len(_lines(pooled)))
    _legend(figure, axes[0], colors)
    figure.supxlabel(
        "Bars: 95 % intervals. In brackets: n. Grey ticks: a random order.", fontsize=9
    )
    return figure


def _lines(table: pd.DataFrame) -> dict[Line, int]:
    """Each line, in the order of the table, and its n."""
    counts = table.groupby(["dataset", "modality"], sort=False)["n"].max().reset_index()
    names = zip(counts["dataset"], counts["modality"], strict=True)
    return dict(zip(names, counts["n"].astype(int), strict=True))


def _rows(table: pd.DataFrame, places: Mapping[Line, int]) -> np.ndarray:
    keys = table[["dataset", "modality"]].itertuples(index=False, name=None)
    return np.array([places[key] for key in keys], float)


def _marks(
    axis: Axes,
    table: pd.DataFrame,
    column: str,
    places: Mapping[Line, int],
    colors: Mapping[str, str],
) -> None:
    """Means with their intervals, the retrievers a little apart."""
    for shift, (name, color) in zip(dodge(len(colors), 0.22), colors.items(), strict=True):
        part = table[table[column] == name]
        if part.empty:
            continue
        y = _rows(part, places) + shift
        axis.hlines(y, part["ci_low"], part["ci_high"], color=color, linewidth=1.4)
        axis.plot(part["value"], y, "o", color=color, markersize=5.5, zorder=3)


def _frame(axes: np.ndarray, lines: Mapping[Line, int], pooled_from: int) -> None:
    """The lines' names with their n, and a rule above the pooled ones."""
    called = {ALL: "all data sets"}
    names = [
        f"{called.get(name, name)}, {_KINDS[modality]} ({n:,})"
        for (name, modality), n in lines.items()
    ]
    axes[0].set_yticks(range(len(names)), names, fontsize=10)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for axis in axes:
        axis.grid(axis="y", visible=False)
        for place in range(1, len(names)):
            pooled = place == pooled_from
            axis.axhline(place - 0.5, color=DARK if pooled else ".88", linewidth=0.8)


def _legend(figure: Figure, axis: Axes, colors: Mapping[str, str]) -> None:
    handles = [
        axis.plot([], [], "o-", color=color, label=name)[0] for name, color in colors.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=10)
