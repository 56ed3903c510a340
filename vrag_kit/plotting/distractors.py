"""Figure of the cost of distractors: paired differences, one row per comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure

_PLACES = {"first": ("o", "clue first"), "last": ("s", "clue last")}
"""Place of the clue → its mark, and what it is called."""
_Row = tuple[str, str, str]  # step, distractors, baseline


def distractor_cost_figure(
    costs: pd.DataFrame, *, panels: str, names: Mapping[str, str] | None = None, title: str = ""
) -> Figure:
    """Draws accuracy minus that of the baseline, in points, with 95 % intervals: a column of panels
    per k, a row per value of the column `panels`, a line per comparison.

    `costs` as `distractor_cost` gives them, in percent; `names` has the titles of distractors and
    baselines. Circles have the clue first, squares last.
    """
    strata, ks = list(dict.fromkeys(costs[panels])), sorted(costs["k"].unique())
    compared = costs[["step", "distractors", "baseline"]].drop_duplicates()
    rows = [(str(a), str(b), str(c)) for a, b, c in compared.itertuples(index=False)]
    colors = model_colors(costs["model"])
    height = 0.34 * len(rows) + 0.9
    size = (4.4 * len(ks) + 2.6, height * len(strata) + 0.9)
    figure, axes = new_figure(len(strata), len(ks), size, sharey=True)
    numbers = np.nan_to_num(costs[["value", "ci_low", "ci_high"]].to_numpy(float))
    bound = 1.06 * max(1.0, float(abs(numbers).max()))
    for line, stratum in zip(axes, strata, strict=True):
        for axis, k in zip(line, ks, strict=True):
            panel = costs[(costs[panels] == stratum) & (costs["k"] == k)]
            _panel(axis, panel, rows, colors)
            axis.set(title=panel_title(f"{stratum}, k = {k}", panel), xlim=(-bound, bound))
            axis.set_xlabel("A − B, accuracy (percentage points)", fontsize=10)
            axis.set_yticks(range(len(rows)), [_label(row, names or {}) for row in rows])
            axis.tick_params(axis="y", labelsize=9)
        line[0].set_ylim(len(rows) - 0.5, -0.5)
    models = [
        Line2D([], [], color=color, linewidth=4, label=model) for model, color in colors.items()
    ]
    places = [place for place in _PLACES if place in set(costs["clue_position"])]
    marks = [
        Line2D([], [], marker=_PLACES[place][0], linestyle="", color=DARK, label=_PLACES[place][1])
        for place in places
    ]
    figure.legend(handles=[*models, *marks], loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def _panel(axis: Axes, panel: pd.DataFrame, rows: list[_Row], colors: dict[str, str]) -> None:
    """The comparisons of one k: marks of the models and places one under another."""
    axis.axvline(0, color=DARK, linewidth=1)
    for above, below in zip(range(len(rows)), range(1, len(rows)), strict=False):
        if rows[above][0] != rows[below][0]:  # another step
            axis.axhline(below - 0.5, color=".7", linewidth=1)
    places = [place for place in _PLACES if place in set(panel["clue_position"])]
    arms = panel[["model", "clue_position"]].drop_duplicates()
    order = [(model, place) for model, place in arms.itertuples(index=False)]
    order.sort(key=lambda arm: (list(colors).index(arm[0]), places.index(arm[1])))
    shifts = np.linspace(-0.28, 0.28, len(order)) if len(order) > 1 else np.zeros(1)
    for (model, place), shift in zip(order, shifts, strict=True):
        mine = panel[(panel["model"] == model) & (panel["clue_position"] == place)]
        keys = list(zip(mine["step"], mine["distractors"], mine["baseline"], strict=True))
        y, color = np.array([rows.index(key) for key in keys]) + shift, colors[model]
        axis.hlines(y, mine["ci_low"], mine["ci_high"], color=color, linewidth=1.4)
        axis.plot(mine["value"], y, _PLACES[place][0], color=color, markersize=5)
    axis.grid(axis="y", visible=False)


def _label(row: _Row, names: Mapping[str, str]) -> str:
    """ "interference: other species − blank"."""
    step, *pair = row
    return f"{step}: {' − '.join(names.get(each, each) for each in pair)}"
