"""Figure of two arms: how many questions changed in which direction, and the paired difference with
the minimum detectable one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from vrag_kit.analysis.run_comparison import format_setting, side_name
from vrag_kit.plotting.old_style import DARK, GREY, model_colors, new_figure

_BEFORE = "metric"
"""The columns before it say how both arms were asked."""
_ROOM = 44
"""Letters of a line beside a row."""


def paired_tests_figure(differences: pd.DataFrame, a: str, b: str) -> Figure:
    """Draws `to_percent(paired_tests(…))` of the arms `a` and `b`, one line per row. On the left
    are the questions that score higher in either, on the right the difference in points with its 95
    % interval. A grey band is below the minimum detectable difference, and full where nothing is
    detectable.
    """
    names = list(differences.columns[: differences.columns.get_loc(_BEFORE)])
    varying = [name for name in names if differences[name].nunique() > 1] or names[:1]
    lines = [textwrap.fill(_line(row), _ROOM) for row in differences[varying].to_dict("records")]
    colors = list(model_colors([a, b]).values())
    heights = [0.42 + 0.12 * line.count("\n") for line in lines]
    figure, ((changed, apart),) = new_figure(1, 2, (9.6, sum(heights) + 2.2), sharey=True)
    y = np.arange(len(differences))
    _changed(changed, differences, y, colors)
    _apart(apart, differences, y, colors[-1])
    changed.set_yticks(y, lines, fontsize=9)
    changed.set_ylim(len(differences) - 0.5, -0.5)
    for axis in (changed, apart):
        axis.axvline(0, color=DARK, linewidth=1)
        axis.grid(axis="y", visible=False)
    changed.set_title("questions that improved", fontsize=9)
    n = differences["n"]
    counts = f"{n.min():,}" if n.min() == n.max() else f"{n.min():,} to {n.max():,}"
    apart.set_title(f"B − A (n = {counts} questions)", fontsize=9)
    sides = zip("AB", (a, b), (colors[0], colors[-1]), strict=True)
    marks = [Patch(color=color, label=f"in {side_name(side, name)}") for side, name, color in sides]
    figure.legend(handles=marks, loc="outside upper center", ncols=1, fontsize=9)
    figure.supxlabel(_note(differences), fontsize=9)
    return figure


def _note(differences: pd.DataFrame) -> str:
    """What bars are, and what of the grey there is."""
    blind = differences["mde"].isna()
    words = "Bars: 95 % intervals."
    if not blind.all():
        words += " Grey: below the minimum detectable difference (power 80 %)."
    if blind.any():
        words += "\nFully grey: too few questions change to detect any difference."
    return words


def _line(row: Mapping[Hashable, object]) -> str:
    """A way of asking in words: "top_k, k = 5"."""
    words = [format_setting(str(name), value) for name, value in row.items()]
    return ", ".join(word for word in words if word)


def _changed(axis: Axes, table: pd.DataFrame, y: np.ndarray, colors: list[str]) -> None:
    """Questions lost to the left in A's colour, gained to the right in B's."""
    axis.barh(y, -table["n_worsened"], color=colors[0], height=0.6)
    axis.barh(y, table["n_improved"], color=colors[-1], height=0.6)
    for at, lost, gained in zip(y, table["n_worsened"], table["n_improved"], strict=True):
        axis.annotate(f"{lost} ", (-lost, at), ha="right", va="center", fontsize=9)
        axis.annotate(f" {gained}", (gained, at), ha="left", va="center", fontsize=9)
    most = 1.2 * max(1, table["n_worsened"].max(), table["n_improved"].max())
    axis.set(xlim=(-most, most), xlabel="questions")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.xaxis.set_major_formatter(lambda count, _: f"{abs(count):g}")


def _apart(axis: Axes, table: pd.DataFrame, y: np.ndarray, color: str) -> None:
    axis.hlines(y, table["ci_low"], table["ci_high"], color=color, linewidth=1.6)
    axis.plot(table["value"], y, "o", color=color, markersize=6)
    ends = np.nan_to_num(table[["ci_low", "ci_high", "mde"]].to_numpy(float))
    bound = 1.06 * max(1.0, float(abs(ends).max()))
    unseen = table["mde"].fillna(bound)
    axis.barh(y, 2 * unseen, left=-unseen, height=0.6, color=to_rgba(GREY, 0.25), zorder=0)
    axis.set(xlim=(-bound, bound), xlabel="B − A (percentage points)")
