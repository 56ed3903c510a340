"""Forest plot of paired differences: a line per part of the questions, a panel per arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.agreement import FEW
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import dodge, legend_columns
from vrag_kit.plotting.old_style import DARK, GREY, model_colors, new_figure

_BETWEEN = 0.1
"""The room between panels, in widths of a panel: two numbers of ticks do not touch."""
_FAINT = 0.4
_MARKS = ("o", "s", "^", "D")
"""Of the values of the column `marks`, in order."""


def old_forest(
    differences: pd.DataFrame,
    panels: Mapping[str, str],
    *,
    lines: Sequence[str],
    marks: str = "",
    others: pd.DataFrame | None = None,
    others_are: str = "",
) -> Figure:
    """Draws differences in points with 95 % intervals, by model: a panel for each of `panels`
    (setting → title), a line for each combination of the columns `lines`. The last of these columns
    names the line, and the first groups lines.

    `differences` are `to_percent(paired_differences(…))` with model, setting and `lines`; `marks`
    names a column whose values have different marks. `others` are differences on other data, as
    small grey ticks: setting, value, and `lines`; `others_are` says what they are. A mark is hollow
    where some answers failed, and faint where n is below `FEW`; the caption says so where there is
    one. The axis of a panel names its metric, where it has one.
    """
    names = list(differences[list(lines)].drop_duplicates().itertuples(index=False, name=None))
    colors = model_colors(differences["model"])
    kinds = list(dict.fromkeys(differences[marks])) if marks else [""]
    height = 0.24 + 0.12 * len(colors) * len(kinds)
    size = (4.3 * len(panels) + 1.6, height * len(names) + 2.1)
    figure, (axes,) = new_figure(1, len(panels), size, sharey=True)
    drawn = differences[differences["setting"].isin(list(panels))]
    ends = np.nan_to_num(drawn[["value", "ci_low", "ci_high"]].to_numpy(float))
    bound = 1.06 * max(1.0, float(abs(ends).max()))
    for axis, (setting, title) in zip(axes, panels.items(), strict=True):
        mine = differences[differences["setting"] == setting]
        if others is not None:
            _ticks(axis, others[others["setting"] == setting], names, lines)
        arms = list(product(colors, kinds))
        for shift, (model, kind) in zip(dodge(len(arms), 0.7 / len(arms)), arms, strict=True):
            chosen = mine["model"] == model
            if marks:
                chosen &= mine[marks] == kind
            y = _places(mine[chosen], names, lines) + shift
            _bars(axis, mine[chosen], y, colors[model], _MARKS[kinds.index(kind) % len(_MARKS)])
        axis.axvline(0, color=DARK, linewidth=1)
        axis.set(title=panel_title(title, mine).replace(" (n", "\n(n"), xlim=(-bound, bound))
        axis.set_xlabel(_difference(mine))
        axis.grid(axis="y", visible=False)
    _name_lines(axes, names)
    handles, columns = _side_by_side(
        _handles(colors, kinds, others_are), legend_columns(size[0], 8)
    )
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, fontsize=9)
    figure.set_layout_engine("constrained", wspace=_BETWEEN)
    words = " Hollow: some answers failed." if (drawn["n_failed"] > 0).any() else ""
    words += f" Faint: n below {FEW}." if (drawn["n"] < FEW).any() else ""
    figure.supxlabel(f"Bars: 95 % intervals, not corrected for their number.{words}", fontsize=9)
    return figure


def _difference(table: pd.DataFrame) -> str:
    """What an x axis shows: a difference in the one metric there is, or in each its own."""
    metrics = list(table["metric"].unique()) if "metric" in table else ["accuracy"]
    what = f"difference in {metrics[0]}" if len(metrics) == 1 else "difference"
    return f"{what} (percentage points)"


def _places(table: pd.DataFrame, names: list[tuple[str, ...]], lines: Sequence[str]) -> np.ndarray:
    """The line of each row, from 0 at the top."""
    keys = table[list(lines)].itertuples(index=False, name=None)
    return np.array([names.index(key) for key in keys], float)


def _bars(axis: Axes, table: pd.DataFrame, y: np.ndarray, color: str, marker: str) -> None:
    failed, few = (table["n_failed"] > 0).to_numpy(bool), (table["n"] < FEW).to_numpy(bool)
    for is_few, alpha in ((False, 1.0), (True, _FAINT)):
        some = few == is_few
        ends = table["ci_low"][some], table["ci_high"][some]
        axis.hlines(y[some], *ends, color=color, linewidth=1.4, alpha=alpha)
        for which, face in ((some & ~failed, color), (some & failed, "white")):
            (drawn,) = axis.plot(table["value"][which], y[which], marker, color=color)
            drawn.set(markersize=5, markerfacecolor=face, alpha=alpha, zorder=3)


def _ticks(
    axis: Axes, others: pd.DataFrame, names: list[tuple[str, ...]], lines: Sequence[str]
) -> None:
    """Small grey ticks across the line of each difference on other data."""
    keys = others[list(lines)].itertuples(index=False, name=None)
    known = others[np.array([key in names for key in keys], bool)]
    y = _places(known, names, lines)
    axis.vlines(known["value"], y - 0.4, y + 0.4, color=GREY, linewidth=0.9, alpha=0.6)


def _name_lines(axes: Sequence[Axes], names: list[tuple[str, ...]]) -> None:
    """The lines' names, and a rule between groups of lines."""
    axes[0].set_yticks(range(len(names)), [name[-1] for name in names], fontsize=10)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for place in range(1, len(names)):
        if len(names[place]) > 1 and names[place][0] != names[place - 1][0]:
            for axis in axes:
                axis.axhline(place - 0.5, color=".6", linewidth=1)


def _handles(
    colors: Mapping[str, str], kinds: Sequence[str], others_are: str
) -> list[list[Line2D]]:
    """What the legend explains, like beside like: models, marks, the ticks of others."""
    models = [
        Line2D([], [], color=color, linewidth=4, label=model) for model, color in colors.items()
    ]
    marks = [
        Line2D([], [], color=DARK, linestyle="", marker=marker, label=kind)
        for marker, kind in zip(cycle(_MARKS), kinds, strict=False)
    ]
    tick = Line2D([], [], color=GREY, linestyle="", marker="|", markersize=11, label=others_are)
    return [models, marks if len(kinds) > 1 else [], [tick] if others_are else []]


def _side_by_side(groups: Sequence[list[Line2D]], most: int) -> tuple[list[Line2D], int]:
    """The handles of a legend, which is filled column by column, and its columns, `most` at
    most: each group begins a column of its own, in as few lines as these allow.
    """
    groups = [group for group in groups if group]
    most = max(most, len(groups))
    lines = 1
    while sum(-(-len(group) // lines) for group in groups) > most:
        lines += 1
    handles: list[Line2D] = []
    for group in groups:
        nothing = [Line2D([], [], linestyle="", label=" ") for _ in range(-len(group) % lines)]
        handles += [*group, *nothing]
    return handles, len(handles) // lines
