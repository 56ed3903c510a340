"""Figures of answer quality: the baselines, and accuracy over k.

The same functions draw computed and published numbers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import SETTING_NAMES, setting_name
from vrag_kit.plotting.agreement import FEW
from vrag_kit.plotting.old_panels import (
    MARKERS,
    Mark,
    dodge,
    draw_categories,
    draw_means,
    interval_note,
    legend_columns,
    numeric_axis,
    percent_limits,
    point_size,
    text_width,
    wrap_title,
)
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure

BASELINES = {"zero_shot": "zero-shot (no image)", "gt_clue": "one clue", "non_clue": "one non-clue"}
_BESIDE = {"zero_shot": "no\nimage", "gt_clue": "one\nclue", "non_clue": "one\nnon-clue"}
"""The same in few words, as ticks beside the curves."""
_OVER_K = {
    "top_k": ("top-k", "images shown, k (top-k)"),
    "one_in_k": ("1-in-k", "images shown, k (one clue)"),
}
"""The panels of `accuracy_figure`: setting → its name, and its x axis."""
_PANEL = 5.0  # inches from a panel over k to the next
_AXIS = 0.5  # inches of the y axis of a panel
_NAME = 36  # letters of a line of a model's name
_FAINT = 0.4
_WIDEST = 0.9  # all models of one k, in images
Arm = tuple[str, int | None]
"""A setting and its k; None for any k."""


def concat_sources(
    sources: Mapping[str, pd.DataFrame], settings: Sequence[str] = ()
) -> pd.DataFrame:
    """Concatenates the tables of a figure, with their title in the column `source`; only the given
    settings, if any.
    """
    table = pd.concat(sources, names=["source"]).reset_index("source").reset_index(drop=True)
    return table[table["setting"].isin(settings)] if settings else table


def panel_title(title: str, table: pd.DataFrame) -> str:
    """The title of a panel with its n, or with the smallest and the largest n of its points."""
    fewest, most = int(table["n"].min()), int(table["n"].max())
    return f"{title} (n = {most})" if fewest == most else f"{title} (n = {fewest} to {most})"


def baseline_figure(
    sources: Mapping[str, pd.DataFrame],
    *,
    settings: Mapping[str, str] | None = None,
) -> Figure:
    """Draws one panel per source (title → table with model, setting, k, value, ci_low, ci_high, in
    percent): every model in each of `settings` (setting → its name), each with its marker, all on
    one y axis.

    Without `settings` these are the three baselines, followed by custom settings in the order of
    the tables, each at each of its k. Points are hollow where answers failed (`draw_means`), and
    faint where n is below `FEW`.
    """
    arms = _arms(list(sources.values()), settings)
    widths = [max(2, table["model"].nunique()) for table in sources.values()]
    step = min(0.2, _WIDEST / len(arms))
    wide = 0.85 * sum(widths) + 3.6
    figure, axes = new_figure(1, len(sources), (wide, 4.7), sharey=True, width_ratios=widths)
    each = (wide - 0.3 - _AXIS * len(sources)) / sum(widths)
    for axis, (title, table), width in zip(axes[0], sources.items(), widths, strict=True):
        colors = model_colors(table["model"])
        for place, (model, color) in enumerate(colors.items()):
            shifts = dodge(len(arms), step)
            for arm, marker, shift in zip(arms, cycle(MARKERS), shifts, strict=False):
                rows = table[(table["model"] == model) & _of_arm(table, arm)]
                for is_few, alpha in ((False, 1.0), (True, _FAINT)):
                    some = rows[(rows["n"] < FEW) == is_few]
                    look = Mark(color, marker, size=8.0, alpha=alpha)
                    draw_means(axis, np.full(len(some), place + shift), some, look)
        axis.set(
            title=wrap_title(panel_title(title, table), _AXIS + each * width),
            xlim=(-0.6, len(colors) - 0.4),
        )
        names = [textwrap.fill(model.replace("field-guide-", ""), _NAME) for model in colors]
        longest = max(text_width(line, 9) for line in "\n".join(names).splitlines())
        long = len(names) > 3 or longest > each
        slant = {"rotation": 25, "ha": "right"} if long else {}
        axis.set_xticks(range(len(colors)), names, fontsize=9, **slant)
        axis.grid(axis="x", visible=False)
        axis.tick_params(labelleft=True)
    shown = {setting for setting, _ in arms}
    tables = [table[table["setting"].isin(shown)] for table in sources.values()]
    low, high = percent_limits(tables)
    axes[0][0].set(ylim=(min(-3.0, low), high), ylabel="Accuracy (%)")
    for marker, label in zip(cycle(MARKERS), arms.values(), strict=False):
        axes[0][0].plot([], [], marker, color=DARK, markersize=8, label=label)
    handles, labels = axes[0][0].get_legend_handles_labels()
    columns = legend_columns(wide, 4)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=9)
    few = any((table["n"] < FEW).any() for table in tables)
    figure.supxlabel(interval_note(tables) + (f" Faint: n below {FEW}." if few else ""), fontsize=9)
    return figure


def _arms(tables: Sequence[pd.DataFrame], settings: Mapping[str, str] | None) -> dict[Arm, str]:
    """Arm → what `baseline_figure` calls it."""
    arms: dict[Arm, str] = {(each, None): name for each, name in (settings or BASELINES).items()}
    for setting, ks in _others(tables, SETTING_NAMES).items() if settings is None else ():
        arms |= {(setting, k): f"{setting_name(setting)}, k = {k}" for k in ks}
    return arms


def _of_arm(table: pd.DataFrame, arm: Arm) -> pd.Series:
    """Which rows are of an arm."""
    setting, k = arm
    chosen = table["setting"] == setting
    return chosen if k is None else chosen & (table["k"] == k)


def _others(tables: Sequence[pd.DataFrame], known: Collection[str]) -> dict[str, list[int]]:
    """The settings that are none of those known, as they come → their k, the smallest
    first.
    """
    rows = pd.concat([table[["setting", "k"]] for table in tables])
    others = rows[~rows["setting"].isin(list(known))]
    return {str(name): sorted(set(ks)) for name, ks in others.groupby("setting", sort=False)["k"]}


def accuracy_figure(sources: Mapping[str, pd.DataFrame], metric: str = "Accuracy") -> Figure:
    """Draws one row per source (title → table with model, setting, k, value, ci_low, ci_high, in
    percent): settings without retrieval at the side, then top-k and 1-in-k over k, where they
    exist; all on one y axis.

    The title of 1-in-k gives the position of the clue, unless that is first (`add_clue_position`).
    Custom settings follow these where they have several k, and else are at the side. Bars are 95 %
    intervals where there are any. Points are hollow where answers failed (`draw_means`).
    """
    tables = list(sources.values())
    found = set(pd.concat(tables)["setting"])
    panels = {setting: names for setting, names in _OVER_K.items() if setting in found}
    beside = {setting: name for setting, name in _BESIDE.items() if setting in found}
    for setting, ks in _others(tables, {*_BESIDE, *_OVER_K}).items():
        name = setting_name(setting)
        if len(ks) > 1:
            panels[setting] = (name, "documents shown, k")
        else:
            beside[setting] = f"{name},\nk = {ks[0]}"
    panels = panels or _OVER_K
    figure, axes = new_figure(
        len(sources),
        len(panels) + 2,
        (_PANEL * len(panels) + 0.85 * len(beside) + 1.6, 3.5 * len(sources) + 0.9),
        sharey=True,
        width_ratios=(0.2 * max(1, len(beside)), *[1.0] * len(panels), 0.28),
    )
    for row, (title, table) in zip(axes, sources.items(), strict=True):
        draw_categories(row[0], table, beside, "setting")
        row[0].set(title="baselines", ylabel=f"{metric} (%)")
        for axis, (setting, (label, shown)) in zip(row[1:-1], panels.items(), strict=True):
            _over_k(axis, table, setting)
            told = f"{panel_title(title, table)}: {label}{_clue_place(table, setting)}"
            axis.set(title=wrap_title(told, _PANEL - 1), xlabel=shown)
        for axis in row[:-1]:
            axis.tick_params(labelleft=True)
        legend_in_empty_panel(row[-1], table)
    axes[0][0].set_ylim(percent_limits(tables))
    figure.supxlabel(interval_note(tables), fontsize=9)
    return figure


def _clue_place(table: pd.DataFrame, setting: str) -> str:
    """Where the clue of a setting stands, of `add_clue_position`; "" where that is as usual."""
    if "clue_position" not in table:
        return ""
    places = table.loc[table["setting"] == setting, "clue_position"].unique()
    return "".join(f", clue {place}" for place in places if place not in ("", "first"))


def _over_k(axis: Axes, table: pd.DataFrame, setting: str) -> None:
    """A line a model over the k of a setting, the models a little apart."""
    colors, shown = model_colors(table["model"]), table[table["setting"] == setting]
    step, size = min(0.25, _WIDEST / max(1, len(colors))), point_size(len(colors))
    for shift, (model, color) in zip(dodge(len(colors), step), colors.items(), strict=True):
        line = shown[shown["model"] == model].sort_values("k")
        draw_means(axis, line["k"].to_numpy(float) + shift, line, Mark(color, line="-", size=size))
    numeric_axis(axis, shown["k"])


def legend_in_empty_panel(axis: Axes, table: pd.DataFrame) -> None:
    """Draws the legend of a row's models in its last panel, which is otherwise empty."""
    axis.axis("off")
    for model, color in model_colors(table["model"]).items():
        axis.plot([], [], "o-", color=color, label=model)
    axis.legend(fontsize=9, loc="center left")
