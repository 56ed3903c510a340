"""Helpers that draw means in figures: a point with its interval, hollow where answers failed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.textpath import TextPath

from vrag_kit.plotting.old_style import DARK, SETTING_MARKERS, model_colors

MARKERS = ("o", "^", "X", "s", "D", "v", "P", "p", "h", "<", ">", "*")
"""Markers of settings that share a panel, in order; they repeat after the last one."""
_TICK = 12  # letters of a line below a tick
_NO_BREAK = "\u00a0"
_LETTER = 0.088  # inches of a letter of a title
_LABEL = 1.9  # inches of a label in a legend
_HANDLE = 0.35  # inches before each label of a legend,
_BETWEEN = 0.25  # between its columns,
_LINE = 0.2  # and of each of its lines
_STEP = 0.14  # between models that stand beside one another, in places of an axis
_HIGHEST = 103.0  # a little above 100 %
_BOUNDS = ["value", "ci_low", "ci_high", "bound_low", "bound_high"]


@dataclass(frozen=True, slots=True)
class Mark:
    """The style of the means of one model."""

    color: str
    marker: str = "o"
    line: str = ""
    """The style of the line between points, as in "-"; "" for none."""
    size: float = 7.0
    """The size of a point, in pt."""
    alpha: float = 1.0
    """The opacity of points and bars."""
    within: tuple[float, float] = (-np.inf, np.inf)
    """The range of the y axis; what lies outside is clipped, with its value at the edge."""


def draw_means(axis: Axes, x: np.ndarray, means: pd.DataFrame, look: Mark) -> None:
    """Draws the means of a table as points at `x`: value and, where there are any, ci_low and
    ci_high as bars, ci_low_runs and ci_high_runs as thick bars, n_failed, bound_low and bound_high.

    A point is hollow where answers failed; a thin whisker then reaches from the mean if all of them
    were incorrect to that if all were correct. Points outside the axis sit at its edge as
    triangles, with their value.
    """
    value = means["value"].to_numpy(float)
    cut = np.clip(value, *look.within)
    if look.line:
        axis.plot(x, cut, look.line, color=look.color, linewidth=1.6)
    for lower, upper, width in (("ci_low", "ci_high", 1.3), ("ci_low_runs", "ci_high_runs", 5.0)):
        if lower in means:
            ends = means[[lower, upper]].to_numpy(float)
            bars = axis.vlines(x, *np.clip(ends, *look.within).T, color=look.color)
            bars.set(linewidth=width, alpha=look.alpha * (1 if width < 2 else 0.45))
            _say_where(axis, x, ends, look)
    failed = has_failures(means)
    if failed.any() and "bound_low" in means:
        ends = means.loc[failed, ["bound_low", "bound_high"]].to_numpy(float)
        axis.vlines(x[failed], *ends.T, color=DARK, linewidth=0.8)
        axis.plot(np.repeat(x[failed], 2), ends.ravel(), "_", color=DARK, markersize=6)
    inside = value == cut
    for some, face, edge in (
        (inside & ~failed, look.color, look.color if look.marker == "X" else "white"),
        (inside & failed, "white", look.color),
    ):
        if some.any():  # an empty line that is not clipped has no place, and breaks the layout
            (marks,) = axis.plot(x[some], value[some], look.marker, markersize=look.size)
            marks.set(markerfacecolor=face, markeredgecolor=edge, clip_on=False, alpha=look.alpha)
            marks.set(markeredgewidth=1.4 if face == "white" else 0.5, zorder=3)
    for at in np.flatnonzero(np.isfinite(value) & ~inside):
        marker = "^" if value[at] > cut[at] else "v"
        axis.plot(x[at], cut[at], marker, color=look.color, markersize=9, clip_on=False)
        _at_edge(axis, x[at], cut[at], value[at], look)


def has_failures(means: pd.DataFrame) -> np.ndarray:
    """Whether each mean lacks answers because calls failed: bool, one per row."""
    if "n_failed" not in means:
        return np.zeros(len(means), bool)
    return (means["n_failed"] > 0).to_numpy(bool)


def draw_categories(axis: Axes, table: pd.DataFrame, names: Mapping[str, str], column: str) -> None:
    """Draws means that have no numeric position, such as zero-shot: one above each of `names`
    (value of `column` → its name), the models side by side.
    """
    colors = model_colors(table["model"])
    step, size = min(_STEP, 0.75 / len(colors)), point_size(len(colors))
    for shift, (model, color) in zip(dodge(len(colors), step), colors.items(), strict=True):
        for place, (level, marker) in enumerate(zip(names, cycle(MARKERS), strict=False)):
            rows = table[(table["model"] == model) & (table[column] == level)]
            x = np.full(len(rows), place + shift)
            marker = SETTING_MARKERS.get(level, marker)
            draw_means(axis, x, rows, Mark(color, marker, size=size + 1))
    ticks = ["\n".join(map(_filled, name.splitlines())) for name in names.values()]
    axis.set_xticks(range(len(names)), ticks, fontsize=9)
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.grid(axis="x", visible=False)


def _filled(line: str) -> str:
    return textwrap.fill(line, _TICK, break_on_hyphens=False)


def wrap_title(title: str, inches: float) -> str:
    """Wraps the title of a panel to a width in inches; its "(n = …)" stays on one line."""
    most = max(_TICK, int(inches / _LETTER))
    whole = re.sub(r"\(n = [^)]*\)", lambda n: n[0].replace(" ", _NO_BREAK), title)
    lines = textwrap.fill(whole, most, break_on_hyphens=False, break_long_words=False)
    return lines.replace(_NO_BREAK, " ")


def dodge(count: int, step: float) -> np.ndarray:
    """The offsets of `count` marks that are drawn side by side, `step` apart."""
    return step * (np.arange(count) - (count - 1) / 2)


def legend_columns(width: float, most: int) -> int:
    """The number of legend columns, at most `most`, that fit into `width` inches."""
    return max(1, min(most, int(width / _LABEL)))


def legends_below(
    axes: Sequence[Axes],
    inches: float,
    *,
    most: int = 3,
    down: float = -0.16,
    size: float = 9,
    room: int = 3,
) -> None:
    """Draws the legend of each axis below it, no wider than `inches`: in at most `most` columns of
    text of `size` pt, with long labels wrapped. The figure has room for `room` lines, and grows by
    what the tallest legend needs beyond that.

    A layout gives a panel what its legend leaves, so one that is too large leaves nothing.
    """
    tallest = max(_legend(axis, inches, most, down, size) for axis in axes)
    figure, grid = axes[0].get_figure(root=True), axes[0].get_gridspec()
    rows = grid.nrows if grid else 1
    if figure and tallest > room:
        figure.set_figheight(figure.get_figheight() + rows * _LINE * (tallest - room))


def _legend(axis: Axes, inches: float, most: int, down: float, size: float) -> int:
    """A legend below an axis; returns its lines."""
    handles, labels = axis.get_legend_handles_labels()
    shares = [0.9 * (inches - _HANDLE) / text_width(label, size) for label in labels]
    labels = [
        label if share > 1 else textwrap.fill(label, int(share * len(label)))
        for label, share in zip(labels, shares, strict=True)
    ]
    widths = [max(text_width(line, size) for line in label.splitlines()) for label in labels]
    columns = _columns(widths, inches, most)
    legend = axis.legend(handles, labels, loc="upper center", ncols=columns, fontsize=size)
    legend.set_bbox_to_anchor((0.5, down), axis.transAxes)
    lines: int = sum(label.count("\n") + 1 for label in labels)
    return -(-lines // columns)


def _columns(widths: Sequence[float], inches: float, most: int) -> int:
    """How many columns of labels fit side by side, each as wide as its widest."""
    for columns in range(min(most, len(widths)), 1, -1):
        parts = np.array_split(np.array(widths), columns)
        labels = sum(float(part.max()) for part in parts)
        if labels + columns * _HANDLE + (columns - 1) * _BETWEEN <= inches:
            return columns
    return 1


def text_width(label: str, size: float) -> float:
    """The width of a line of text of `size` pt, in inches."""
    return float(TextPath((0, 0), label, size=size).get_extents().width) / 72


def point_size(models: int) -> float:
    """The size of points in pt: smaller where many models share a panel."""
    return 7.0 if models <= 4 else 5.0


def numeric_axis(axis: Axes, values: Iterable[int]) -> None:
    """Sets a linear x axis with ticks at the values that occur, and a margin on both sides."""
    ticks = sorted({int(value) for value in values})
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    room = max(0.5, 0.06 * (ticks[-1] - ticks[0])) if ticks else 1.0
    axis.set_xlim(*((ticks[0] - room, ticks[-1] + room) if ticks else (0.0, 1.0)))


def percent_limits(tables: Sequence[pd.DataFrame]) -> tuple[float, float]:
    """The limits of one y axis for all tables in percent: from 0, or the lowest bound below it, to
    just above the highest.
    """
    ends = pd.concat([table[[c for c in _BOUNDS if c in table]] for table in tables])
    lowest, highest = float(ends.min().min()), float(ends.max().max())
    return min(0.0, 1.12 * lowest), min(_HIGHEST, max(1.08 * highest, 1.0))


def interval_note(tables: Sequence[pd.DataFrame], over: str = "") -> str:
    """The caption that explains bars, hollow points and whiskers of these tables."""
    words = [f"Bars: 95 % intervals{over and f' over {over}'}."]
    drawn = [table[table["value"].notna()] for table in tables]
    if any(table["ci_low"].isna().all() for table in drawn if len(table)):
        words.append("No interval: not computable from reported means.")
    printed = [table["ci_low_runs"] for table in tables if "ci_low_runs" in table]
    if printed:
        widest = "Reported: binomial intervals from the reported mean"
        if any(low.notna().any() for low in printed):
            widest += "; thick bars: intervals over the reported runs"
        words.append(f"{widest}.")
    if any(has_failures(table).any() for table in tables):
        words.append(
            "Hollow: some answers failed; whiskers reach to the mean if all of those were"
            " wrong, or right."
        )
    return "\n".join(words)


def _say_where(axis: Axes, x: np.ndarray, ends: np.ndarray, look: Mark) -> None:
    """At the edge of the axis, where a bar that is cut would end."""
    low, high = look.within
    for at, (lower, upper) in zip(x, ends, strict=True):
        if lower < low:
            _at_edge(axis, at, low, lower, look)
        if upper > high:
            _at_edge(axis, at, high, upper, look)


def _at_edge(axis: Axes, x: float, y: float, value: float, look: Mark) -> None:
    """A number inside the edge: left of its bar, right where another stands, or
    further in.
    """
    notes = [text for text in axis.texts if isinstance(text, Annotation)]
    others = [text for text in notes if abs(text.xy[0] - x) < 1 and text.xy[1] == y]
    further, right = divmod(len(others), 2)
    inward = (-1 if value > y else 1) * (6 + 24 * further)
    axis.annotate(
        f"{value:.1f}".replace("inf", "∞").replace("-", "−"),
        (x, y),
        (3 if right else -3, inward),
        textcoords="offset points",
        rotation=90,
        fontsize=7.5,
        color=look.color,
        ha="left" if right else "right",
        va="top" if value > y else "bottom",
    )
