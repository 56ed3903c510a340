"""Figures of answer quality: the baselines, and accuracy over k.

Ours and printed numbers go through the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.marks import (
    MARKERS,
    Look,
    apart,
    draw_levels,
    draw_means,
    note,
    number_axis,
    percent_limits,
    point_size,
)
from vrag_kit.plotting.style import DARK, colors_of, new_figure

BASELINES = {"zero_shot": "zero-shot (no image)", "gt_clue": "one clue", "non_clue": "one non-clue"}
_BESIDE = {"zero_shot": "no\nimage", "gt_clue": "one\nclue", "non_clue": "one\nnon-clue"}
"""The same in few words, as ticks beside the curves."""
_OVER_K = {
    "top_k": ("top-k", "images shown, the first k retrieved"),
    "one_in_k": ("1-in-k", "images shown, one of k a clue"),
}
"""The panels of `accuracy_figure`: setting → its name, and its x axis."""
_WIDEST = 0.9  # all models of one k, in images


def side_by_side(sources: Mapping[str, pd.DataFrame], settings: Sequence[str] = ()) -> pd.DataFrame:
    """The tables behind a figure as one, with their title in the column `source`; of
    some settings only, when they are given.
    """
    table = pd.concat(sources, names=["source"]).reset_index("source").reset_index(drop=True)
    return table[table["setting"].isin(settings)] if settings else table


def panel_title(title: str, table: pd.DataFrame) -> str:
    """The title of a panel with its n, or the fewest and most queries behind its
    points.
    """
    fewest, most = int(table["n"].min()), int(table["n"].max())
    return f"{title} (n = {most})" if fewest == most else f"{title} (n = {fewest} to {most})"


def baseline_figure(
    sources: Mapping[str, pd.DataFrame],
    metric: str = "Accuracy",
    *,
    settings: Mapping[str, str] = BASELINES,
) -> Figure:
    """One panel a source (title → table with model, setting, value, ci_low, ci_high, in
    percent): every model in up to four settings (setting → its name), each with its
    marker, all on one y axis.

    Points are hollow where answers failed (`draw_means`).
    """
    widths = [max(2, table["model"].nunique()) for table in sources.values()]
    figure, axes = new_figure(
        1, len(sources), (0.85 * sum(widths) + 3.6, 4.7), sharey=True, width_ratios=widths
    )
    for axis, (title, table) in zip(axes[0], sources.items(), strict=True):
        colors = colors_of(table["model"])
        for place, (model, color) in enumerate(colors.items()):
            shifts = apart(len(settings), 0.2)
            for setting, marker, shift in zip(settings, MARKERS, shifts, strict=False):
                rows = table[(table["model"] == model) & (table["setting"] == setting)]
                x = np.full(len(rows), place + shift)
                draw_means(axis, x, rows, Look(color, marker, size=8.0))
        axis.set(title=panel_title(title, table), xlim=(-0.6, len(colors) - 0.4))
        slant = {"rotation": 25, "ha": "right"} if len(colors) > 3 else {}
        names = [model.replace("field-guide-", "") for model in colors]
        axis.set_xticks(range(len(colors)), names, fontsize=9, **slant)
        axis.grid(axis="x", visible=False)
        axis.tick_params(labelleft=True)
    tables = [table[table["setting"].isin(list(settings))] for table in sources.values()]
    low, high = percent_limits(tables)
    axes[0][0].set(ylim=(min(-3.0, low), high), ylabel=f"{metric} (%)")
    for marker, label in zip(MARKERS, settings.values(), strict=False):
        axes[0][0].plot([], [], marker, color=DARK, markersize=8, label=label)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)
    figure.supxlabel(note(tables), fontsize=9)
    return figure


def accuracy_figure(sources: Mapping[str, pd.DataFrame], metric: str = "Accuracy") -> Figure:
    """One row a source (title → table with model, setting, k, value, ci_low, ci_high,
    in percent): what is shown without retrieval at the side, then top-k and 1-in-k over
    k, or the one that there is; all on one y axis.

    Bars are 95 % intervals where there are any. Points are hollow where answers failed
    (`draw_means`).
    """
    tables = list(sources.values())
    found = set(pd.concat(tables)["setting"])
    panels = [setting for setting in _OVER_K if setting in found] or list(_OVER_K)
    beside = {setting: name for setting, name in _BESIDE.items() if setting in found}
    figure, axes = new_figure(
        len(sources),
        len(panels) + 2,
        (5.0 * len(panels) + 0.85 * len(beside) + 1.6, 3.5 * len(sources) + 0.9),
        sharey=True,
        width_ratios=(0.2 * max(1, len(beside)), *[1.0] * len(panels), 0.28),
    )
    for row, (title, table) in zip(axes, sources.items(), strict=True):
        draw_levels(row[0], table, beside, "setting")
        row[0].set(title="baselines", ylabel=f"{metric} (%)")
        for axis, setting in zip(row[1:-1], panels, strict=True):
            label, shown = _OVER_K[setting]
            _over_k(axis, table, setting)
            axis.set(title=f"{panel_title(title, table)}: {label}", xlabel=shown)
        for axis in row[:-1]:
            axis.tick_params(labelleft=True)
        legend_beside(row[-1], table)
    axes[0][0].set_ylim(percent_limits(tables))
    figure.supxlabel(note(tables), fontsize=9)
    return figure


def _over_k(axis: Axes, table: pd.DataFrame, setting: str) -> None:
    """A line a model over the k of a setting, the models a little apart."""
    colors, shown = colors_of(table["model"]), table[table["setting"] == setting]
    step, size = min(0.25, _WIDEST / max(1, len(colors))), point_size(len(colors))
    for shift, (model, color) in zip(apart(len(colors), step), colors.items(), strict=True):
        line = shown[shown["model"] == model].sort_values("k")
        draw_means(axis, line["k"].to_numpy(float) + shift, line, Look(color, line="-", size=size))
    number_axis(axis, shown["k"])


def legend_beside(axis: Axes, table: pd.DataFrame) -> None:
    """The legend of a row's models in its last and else empty panel."""
    axis.axis("off")
    for model, color in colors_of(table["model"]).items():
        axis.plot([], [], "o-", color=color, label=model)
    axis.legend(fontsize=9, loc="center left")
