"""Matrix of benchmarks and metrics: a mean with its interval and n in each cell, or a letter for
the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vrag_kit.plotting.old_style import DARK, GREY, model_colors, new_figure

_WIDTH, _HEIGHT = 1.3, 0.66  # of a cell, inches
_LEFT, _TOP = 3.1, 0.95  # for names of rows and of columns
_LINE = 0.19  # of a reason, inches
_BESIDE = 2  # reasons in a line
_NAME = 30  # letters of a name in a line
_FEW, _PALER = 15, 0.35
"""Means of fewer than so many are faint, by so much of their colour."""
_WITHIN = {"truthfulness": (-100.0, 100.0)}
_SHARE = (0.0, 100.0)
_PALE, _TRACK = "#F5F5F5", "#DEDEDE"
_FAINT = "#6B6B6B"
_INSET = 0.1  # of a cell's width, on either side of a track
_ON_TRACK = 0.17  # below the middle of a cell

_Row = Mapping[Hashable, Any]  # cells of a table
Style = dict[str, Any]  # matplotlib's properties have values of many types


@dataclass(frozen=True, slots=True)
class _Track:
    """The scale of a column, from left to right of a cell."""

    low: float
    high: float
    unit: str

    def place(self, column: int, value: float) -> float:
        """Where a value stands, in cells from the left; not beyond its cell."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return column + _INSET + (1 - 2 * _INSET) * share

    def number(self, value: float) -> str:
        """A value as it is written in a cell."""
        text = f"{value:.0f}" if self.unit == "percent" else f"{value:.2f}"
        return text.replace("-", "−")

    @property
    def told(self) -> str:
        """The scale in words."""
        if self.unit == "percent":
            return f"{self.number(self.low)} to {self.number(self.high)} %"
        return f"{self.low:.1f} to {self.high:.1f}".replace("-", "−")


def score_matrix(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Draws a row for each benchmark and model of `cross_benchmark_scores`, and a column for each
    of `names` (metric → title). Cells show the mean, its 95 % interval in numbers and on a scale,
    and n; or a letter, with the reason below. A mean of fewer than 15 is faint.

    Shares are drawn from 0 to 100 %, truthfulness from −100 %, a ratio as far as its
    intervals reach.
    """
    lines = list(dict.fromkeys(zip(table["benchmark"], table["model"], strict=True)))
    shown = table[table["metric"].isin(list(names))]
    reasons = [reason for reason in shown["reason"].unique() if reason]
    letters = {reason: _letter(number) for number, reason in enumerate(reasons)}
    notes = -(-len(reasons) // _BESIDE) * _LINE + 0.5
    size = (_LEFT + _WIDTH * len(names) + 0.1, _TOP + _HEIGHT * len(lines) + notes)
    figure, ((axis,),) = new_figure(1, 1, size)
    figure.set_layout_engine("none")
    width, height = _WIDTH * len(names) / size[0], _HEIGHT * len(lines) / size[1]
    axis.set_position((_LEFT / size[0], notes / size[1], width, height))
    axis.set(xlim=(0, len(names)), ylim=(len(lines) - 0.5, -0.5))
    axis.set_axis_off()
    colors = model_colors(table["model"])
    _name_rows(axis, lines, colors)
    for column, (metric, title) in enumerate(names.items()):
        cells = shown[shown["metric"] == metric]
        track = _track(cells)
        _name_column(axis, column, title, track)
        for row in cells.to_dict("records"):
            at = (column, lines.index((row["benchmark"], row["model"])))
            if row["reason"]:
                _say(axis, at, letters[row["reason"]])
            else:
                _draw(axis, at, row, track, colors[row["model"]])
    hollow, few = (shown["n_failed"] > 0).any(), shown["n"].between(1, _FEW - 1).any()
    _explain(figure, letters, hollow=bool(hollow), few=bool(few))
    return figure


def _letter(number: int) -> str:
    """a to z, then aa to zz."""
    ring, at = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[at] * (ring + 1)


def _track(cells: pd.DataFrame) -> _Track:
    unit = str(cells["unit"].iloc[0])
    if unit == "percent":
        return _Track(*_WITHIN.get(str(cells["metric"].iloc[0]), _SHARE), unit)
    return _Track(min(0.0, cells["ci_low"].min()), max(1.0, cells["ci_high"].max()), unit)


def _name_rows(axis: Axes, lines: Sequence[tuple[str, str]], colors: Mapping[str, str]) -> None:
    """Name, and the model in its colour, at the left of every line; a band behind every
    second.
    """
    left = _LEFT / _WIDTH
    for place, (name, model) in enumerate(lines):
        if place % 2 == 0:
            band = Rectangle((-left, place - 0.5), left + axis.get_xlim()[1], 1, facecolor=_PALE)
            band.set(edgecolor="none", clip_on=False, zorder=0)
            axis.add_patch(band)
        beside: Style = {"xytext": (-10, 0), "textcoords": "offset points", "ha": "right"}
        where: Style = {"annotation_clip": False, **beside}
        title: Style = {"fontsize": 11, "fontweight": "bold", "va": "bottom", **where}
        axis.annotate(fill(name, _NAME), (0, place + 0.12), linespacing=1.0, **title)
        about: Style = {"fontsize": 8, "color": colors[model], "va": "center", **where}
        axis.annotate(model, (0, place + 0.26), **about)


def _name_column(axis: Axes, column: int, title: str, track: _Track) -> None:
    above: Style = {"textcoords": "offset points", "ha": "center", "annotation_clip": False}
    told: Style = {"fontsize": 8, "color": _FAINT, "va": "bottom", **above}
    axis.annotate(track.told, (column + 0.5, -0.5), (0, 6), **told)
    head: Style = {"fontsize": 10.5, "fontweight": "bold", "va": "bottom", **above}
    axis.annotate(fill(title, 12), (column + 0.5, -0.5), (0, 20), **head)


def _draw(axis: Axes, at: tuple[int, int], row: _Row, track: _Track, color: str) -> None:
    """The cell of a value: in numbers above, on its scale, and n below."""
    column, place = at
    line = place + _ON_TRACK
    faint = _PALER if row["n"] < _FEW else 1.0
    ends = (track.place(column, track.low), track.place(column, track.high))
    axis.hlines(line, *ends, color=_TRACK, linewidth=5, zorder=1)
    if track.low < 0:
        zero = track.place(column, 0)
        axis.vlines(zero, line - 0.1, line + 0.1, color=GREY, linewidth=1, zorder=2)
    reach = (track.place(column, row["ci_low"]), track.place(column, row["ci_high"]))
    axis.hlines(line, *reach, color=color, linewidth=5, alpha=0.45 * faint, zorder=3)
    face = "white" if row["n_failed"] else color
    mark: Style = {"color": color, "markersize": 6, "markerfacecolor": face, "zorder": 4}
    mark |= {"alpha": faint}
    axis.plot(track.place(column, row["value"]), line, "o", **mark)
    value = track.number(row["value"])
    interval = f"[{track.number(row['ci_low'])}, {track.number(row['ci_high'])}]"
    number: Style = {"fontsize": 12.5, "fontweight": "bold", "ha": "right", "va": "baseline"}
    axis.text(column + 0.38, place - 0.1, value, alpha=faint, **number)
    beside: Style = {"fontsize": 8, "color": DARK, "ha": "left", "va": "baseline"}
    axis.text(column + 0.41, place - 0.1, interval, alpha=faint, **beside)
    counted = "" if row["unit_of_n"] == "questions" else f" {row['unit_of_n']}"
    below: Style = {"fontsize": 7.5, "color": _FAINT, "ha": "center", "va": "center"}
    axis.text(column + 0.5, place + 0.37, f"n = {row['n']:,}{counted}", **below)


def _say(axis: Axes, at: tuple[int, int], letter: str) -> None:
    """The letter of a reason, in the middle of its cell."""
    told: Style = {
        "fontsize": 11,
        "fontstyle": "italic",
        "color": GREY,
        "ha": "center",
        "va": "center",
    }
    axis.text(at[0] + 0.5, at[1], letter, **told)


def _explain(figure: Figure, letters: Mapping[str, str], *, hollow: bool, few: bool) -> None:
    """Below: what letters stand for, and what bars are."""
    width, height = figure.get_size_inches()
    lines = -(-len(letters) // _BESIDE)
    for number, (reason, letter) in enumerate(letters.items()):
        beside, below = divmod(number, lines)
        x = (0.15 + beside * (width - 0.15) / _BESIDE) / width
        y = (0.2 + _LINE * (lines - below)) / height
        figure.text(x, y, letter, fontsize=9, fontstyle="italic", color=_FAINT)
        figure.text(x + 0.22 / width, y, reason, fontsize=9, color=DARK)
    told = "Bars: 95 % intervals, clustered by group."
    if hollow:
        told += " Hollow: some answers failed."
    if few:
        told += f" Faint: n below {_FEW}."
    figure.text(1 - 0.1 / width, 0.08 / height, told, fontsize=9, color=_FAINT, ha="right")
