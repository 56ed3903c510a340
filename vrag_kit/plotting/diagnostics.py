"""Figures of composition: outcomes as stacked bars, confusion matrices, and tables as heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vrag_kit.plotting.panels import NO_NAMES, Names
from vrag_kit.plotting.style import (
    DARK,
    PAGE,
    SMALL,
    count_label,
    display_name,
    fit,
    new_figure,
    series_colors,
    set_axes_height,
    set_caption,
)


def outcome_bars(
    shares: pd.DataFrame,
    *,
    rows: str | Sequence[str],
    outcomes: Mapping[str, str],
    colors: Mapping[str, str] | None = None,
    panels: str = "",
    names: Names = NO_NAMES,
    beside: str = "",
    xlabel: str = "Answers (%)",
    unit: str = "answers",
    title: str = "",
    caption: str = "",
) -> Figure:
    """Draws a stacked bar for each value of `rows`: the shares, in percent, of the `outcomes`
    (value of the column metric → its name), in their order; a panel for each value of `panels`.

    `beside` names the metric whose mean and interval are written at the end of each bar. The
    colours are `series_colors` of the outcomes unless given. `shares` has one row for each bar and
    metric.
    """
    keys = [rows] if isinstance(rows, str) else list(rows)
    found = list(dict.fromkeys(shares[panels].astype(str))) if panels else [""]
    bars = list(shares[keys].drop_duplicates().itertuples(index=False, name=None))
    apart = not panels and shares["n"].nunique() > 1  # n then is in the rows
    height = 0.24 * len(bars) + 1.0
    figure, axes = new_figure(1, len(found), height=height, sharey=True, sharex=True)
    colors = colors or series_colors("metric", list(outcomes))
    for name, axis in zip(found, axes[0], strict=True):
        panel = shares[shares[panels].astype(str) == name] if panels else shares
        for at, bar in enumerate(bars):
            mine = panel[(panel[keys] == list(bar)).all(axis=1)].set_index("metric")
            start = 0.0
            for outcome in [each for each in outcomes if each in mine.index]:
                share = float(mine["value"].astype(float)[outcome])
                axis.barh(at, share, left=start, height=0.7, color=colors[outcome], linewidth=0)
                start += share
            if beside in mine.index:
                ends = mine.loc[beside, ["value", "ci_low", "ci_high"]]
                text = "{:.0f} [{:.0f}, {:.0f}]".format(*ends).replace("-", "−")
                axis.text(101, at, text, va="center", fontsize=SMALL, color=DARK)
        if beside:
            head = f"{display_name(outcomes.get(beside, beside), names)}\n[95 % interval]"
            axis.text(101, -0.55, head, va="bottom", fontsize=SMALL, color=DARK)
        counts = "" if apart else count_label(panel["n"].unique(), unit)
        heads = [display_name(name, names) if panels else "", counts]
        axis.set_title(("\n" if beside else " · ").join(filter(None, heads)))
        axis.set(xlim=(0, 100), ylim=(len(bars) - 0.4, -0.6))
        axis.grid(visible=False)
    labels = [" · ".join(display_name(part, names) for part in bar) for bar in bars]
    if apart:
        counts_of = shares.groupby(keys, sort=False)["n"].agg(count_label, unit)
        labels = [f"{label} ({n})" for label, n in zip(labels, counts_of, strict=True)]
    labels = [fit(label, 1.7, 7.5) for label in labels]
    axes[0][0].set_yticks(range(len(bars)), labels)
    figure.supxlabel(xlabel, fontsize=8)
    drawn = set(shares.loc[shares["value"] > 0, "metric"])
    handles = [
        Patch(color=colors[each], label=outcomes[each]) for each in outcomes if each in drawn
    ]
    set_caption(figure, title, caption, handles)
    lines = max((1 + label.count("\n") for label in labels), default=1)
    set_axes_height(figure, axes[0][0], (0.12 + 0.12 * lines) * max(1, len(bars)))
    return figure


def confusion_plot(
    matrices: Mapping[str, pd.DataFrame],
    *,
    truth: str,
    predicted: str,
    unit: str = "answers",
    title: str = "",
    caption: str = "",
) -> Figure:
    """Draws confusion matrices (title → counts, true labels as rows) side by side, three in a row:
    each cell has its count, and is shaded by its share of its row.
    """
    across = min(3, len(matrices))
    down = -(-len(matrices) // across)
    figure, axes = new_figure(down, across, height=2.1 * down + 0.5)
    for axis in axes.flat[len(matrices) :]:
        axis.remove()
    for axis, (name, matrix) in zip(axes.flat, matrices.items(), strict=False):
        counts = matrix.to_numpy(float)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1.8, aspect="auto")
        for (row, column), count in np.ndenumerate(counts):
            axis.text(column, row, f"{count:,.0f}", ha="center", va="center", fontsize=8)
        axis.set_title(fit(f"{name} · n = {counts.sum():,.0f} {unit}", PAGE / across - 0.5, 8))
        axis.set_xticks(range(matrix.shape[1]), [display_name(each) for each in matrix.columns])
        axis.set_yticks(range(matrix.shape[0]), [display_name(each) for each in matrix.index])
        axis.grid(visible=False)
    figure.supxlabel(predicted, fontsize=8)
    figure.supylabel(truth, fontsize=8)
    key = Patch(color=axes[0][0].images[0].cmap(0.5), label="count (darker: larger share of row)")
    set_caption(figure, title, caption, [key])
    return figure
