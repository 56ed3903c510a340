"""The three figures of means: lines over a number, points by category, and forests of rows.

All draw a tidy table with value, ci_low, ci_high, n and, where answers failed, n_failed, bound_low
and bound_high, in panels that share their axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.style import (
    DARK,
    FEW,
    GREY,
    MARKERS,
    PAGE,
    REPORTED,
    SMALL,
    count_label,
    display_name,
    fit,
    new_figure,
    series_colors,
    set_axes_height,
    set_caption,
)

Dash = Literal["-", "--", ":", ""]
Names = Mapping[str, str]
"""A value of the table → what the figure calls it, in the order in which they are drawn; "reported"
→ what its legend calls a paper's means.
"""
NO_NAMES: Names = MappingProxyType({})
_DODGE = 0.7
"""The share of the room of a category, row or step of x that its marks fill."""


@dataclass(frozen=True, slots=True)
class Series:
    """How the means of one value of `color` and one of `style` are drawn."""

    color: str
    marker: str = "o"
    line: Dash = ""
    """The style of the line between points, as in "-"; "" for none."""


def draw_interval(
    axis: Axes, at: np.ndarray, means: pd.DataFrame, look: Series, *, flat: bool = False
) -> None:
    """Draws means at `at`, shape (n,), as points with their 95 % intervals; `flat`: along the
    x axis.

    A point is hollow where answers failed; thin whiskers then reach from the mean if all of those
    were incorrect to that if all were correct. Intervals of fewer than `FEW` cases are thin.
    """
    values = means["value"].to_numpy(float)
    failed, few = has_failures(means), (means["n"] < FEW).to_numpy(bool)
    bars = axis.hlines if flat else axis.vlines
    if look.line:
        axis.plot(at, values, look.line, color=look.color, linewidth=1.2)
    if "ci_low" in means:
        ends = means[["ci_low", "ci_high"]].to_numpy(float)
        widths = np.where(few, 0.5, 1.1)
        bars(at, *ends.T, color=look.color, linewidth=widths)
    if failed.any() and "bound_low" in means:
        bounds = means.loc[failed, ["bound_low", "bound_high"]].to_numpy(float)
        bars(at[failed], *bounds.T, color=DARK, linewidth=0.5)
    for some, face in ((~failed, look.color), (failed, "white")):
        some = some & np.isfinite(values)
        if some.any():  # an empty line has no place, and breaks the layout
            xy = (values[some], at[some]) if flat else (at[some], values[some])
            (points,) = axis.plot(*xy, look.marker, color=look.color, markersize=4.5, zorder=3)
            edge = "white" if face != "white" and look.marker != "X" else look.color
            points.set(markerfacecolor=face, markeredgecolor=edge, markeredgewidth=0.6)


def _draw_beyond(axis: Axes, *, flat: bool) -> int:
    """Draws an arrow at the edge of a fixed axis for each point outside. Returns how many."""
    arrows = 0
    low, high = axis.get_xlim() if flat else axis.get_ylim()
    for line in [each for each in axis.lines if each.get_marker() in {*MARKERS, "X"}]:
        values = np.asarray(line.get_xdata() if flat else line.get_ydata(), float)
        others = np.asarray(line.get_ydata() if flat else line.get_xdata(), float)
        for edge, outside, marker in (
            (low, values < low, "<" if flat else "v"),
            (high, values > high, ">" if flat else "^"),
        ):
            if outside.any():
                ends = np.full(int(outside.sum()), edge)
                xy = (ends, others[outside]) if flat else (others[outside], ends)
                axis.plot(*xy, marker, color=line.get_color(), markersize=4.5, clip_on=False)
                arrows += len(ends)
    return arrows


def has_failures(means: pd.DataFrame) -> np.ndarray:
    """Whether each mean lacks answers because calls failed: bool, one per row."""
    if "n_failed" not in means:
        return np.zeros(len(means), bool)
    return (means["n_failed"] > 0).to_numpy(bool)


def dodge(count: int, room: float = _DODGE) -> np.ndarray:
    """The offsets of `count` marks that share a room."""
    return room / max(count, 1) * (np.arange(count) - (count - 1) / 2)


def line_plot(
    table: pd.DataFrame,
    *,
    x: str,
    xlabel: str,
    ylabel: str,
    color: str = "model",
    style: str = "",
    panels: str = "",
    names: Names = NO_NAMES,
    levels: pd.DataFrame | None = None,
    reported: pd.DataFrame | None = None,
    limits: tuple[float | None, float | None] = (0, None),
    log: bool = False,
    unit: str = "questions",
    width: float = PAGE,
    height: float = 2.6,
    title: str = "",
    empty: str = "",
    caption: str = "",
) -> Figure:
    """Draws means over the number `x`: a panel for each value of `panels` (at most six, all on the
    same axes), a colour for each of `color`, a line style and marker for each of `style`.

    `levels` are means without a place on the x axis, such as a bound: dashed horizontal lines,
    named at the right (by a column `level`, else by `color`). They and `reported` (a
    paper's means, thin grey lines, one for each value of `color`) are drawn in the panel that they
    name, or in all if they have no column `panels`; a panel may have reported lines alone. A column
    `label` of `reported` names the lines that it has a text for, at the right. `limits` are of the
    y axis: a point outside is an arrow at the edge; where the axis reaches below 0, 0 is a line.
    `height` is that of a row of panels, in inches; `unit` is what n counts. Means with intervals
    that share an x are side by side. `empty` is written into a panel without points.
    """
    drawn = table
    if reported is not None and panels in reported:
        drawn = pd.concat([table, reported[~reported[panels].isin(table[panels])]])
    figure, axes = _panels(drawn, panels, names, width, height, unit)
    looks = _looks(table, color, style, names, ["-", "--", ":"])
    ticks = sorted({*table[x], *(() if reported is None else reported[x])})
    places = np.log(ticks) if log else np.asarray(ticks, float)
    room = width / (2 if len(axes) == 4 else min(3, len(axes))) - 0.6
    apart = 0.06 * (np.ptp(places) or 1.0) / room * ("ci_low" in table)  # 0.06 inches
    for name, axis in axes.items():
        mine = _in_panel(table, panels, name)
        shown = _in_panel(reported, panels, name)
        labels: list[tuple[float, str, float]] = []
        for row in _in_panel(levels, panels, name).to_dict("records"):
            axis.axhline(row["value"], color=DARK, linewidth=1, linestyle="--", zorder=1)
            label = display_name(row.get("level", row[color]), names)
            labels.append((float(row["value"]), label, np.nan))
        for _, line in shown.groupby(color, sort=False) if len(shown) else ():
            line = line.sort_values(x)
            axis.plot(line[x], line["value"], color=REPORTED, linewidth=0.8, zorder=1)
            end = line.iloc[-1]
            if end.get("label"):
                labels.append((float(end["value"]), str(end["label"]), float(end[x])))
        series = {key: _of_series(mine, color, style, key).sort_values(x) for key in looks}
        drawn_at = {key: set(line.dropna(subset="value")[x]) for key, line in series.items()}
        shifts = _side_by_side(drawn_at, ticks, places, apart)
        for values, line in series.items():
            at = line[x].to_numpy(float)
            shift = np.array([shifts.get((values, each), 0.0) for each in line[x]])
            draw_interval(axis, at * np.exp(shift) if log else at + shift, line, looks[values])
        if log:
            axis.set_xscale("log")
        axis.set_xticks(ticks, _tick_labels(ticks, places, room), minor=False)
        axis.minorticks_off()
        axis.grid(visible=False, axis="x")
        _write_at_right(axis, labels, ticks[-1])
        if not len(shown) and not mine["value"].notna().any():
            words = axis.text(0.5, 0.5, fit(empty, room), transform=axis.transAxes, color=GREY)
            words.set(ha="center", va="center")
    _label_axes(figure, xlabel, ylabel)
    next(iter(axes.values())).set_ylim(*limits)
    if next(iter(axes.values())).get_ylim()[0] < 0:
        for axis in axes.values():
            axis.axhline(0, color=DARK, linewidth=0.8, zorder=1)
    if sum(_draw_beyond(axis, flat=False) for axis in axes.values()):
        caption += " Arrows: beyond the axis."
    handles = _handles(looks, names, reported) + _interval_handles(table)
    set_caption(figure, title, _naming_model(caption, title, table), handles)
    return figure


def point_plot(
    table: pd.DataFrame,
    *,
    x: str,
    ylabel: str,
    xlabel: str = "",
    color: str = "model",
    style: str = "",
    panels: str = "",
    names: Names = NO_NAMES,
    reported: pd.DataFrame | None = None,
    reference: Mapping[str, float] = MappingProxyType({}),
    limits: tuple[float | None, float | None] = (0, None),
    unit: str = "questions",
    height: float = 2.4,
    title: str = "",
    caption: str = "",
) -> Figure:
    """Draws means by category: above each value of `x` a mean for each of `color` (and marker of
    `style`), side by side, a panel for each value of `panels` (at most six, all on the same axes).

    `reported` are a paper's means with the columns `x`, value and perhaps `panels`: open grey
    diamonds. `reference` are dashed lines, name → value, such as chance.
    """
    figure, axes = _panels(table, panels, names, PAGE, height, unit)
    looks = _looks(table, color, style, names)
    places = {value: place for place, value in enumerate(_order(table, x, names))}
    room = PAGE / (2 if len(axes) == 4 else min(3, len(axes))) / len(places) - 0.1
    ticks = [fit(display_name(value, names), room, 7.5) for value in places]
    for name, axis in axes.items():
        mine, shown = _in_panel(table, panels, name), _in_panel(reported, panels, name)
        shown = shown[shown[x].astype(str).isin(places)] if len(shown) else shown
        if len(shown):
            at = shown[x].astype(str).map(places) + _DODGE / 2
            axis.plot(at, shown["value"], "D", markersize=4, color=REPORTED, fillstyle="none")
        for shift, (values, look) in zip(dodge(len(looks)), looks.items(), strict=True):
            some = _of_series(mine, color, style, values)
            at = some[x].astype(str).map(places).to_numpy(float) + shift
            draw_interval(axis, at, some, look)
        for value in reference.values():
            axis.axhline(value, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
        axis.set_xticks(range(len(places)), ticks)
        axis.set_xlim(-0.6, len(places) - 0.4)
        axis.grid(visible=False, axis="x")
    _label_axes(figure, xlabel, ylabel)
    next(iter(axes.values())).set_ylim(*limits)
    handles = _handles(looks, names, reported, "D") + _interval_handles(table)
    for name, value in reference.items():
        label = f"{name} ({value:g}{' %' * ('%' in ylabel)})"
        handles.append(Line2D([], [], color=DARK, linestyle="--", label=label))
    set_caption(figure, title, _naming_model(caption, title, table), handles)
    return figure


def forest_plot(
    table: pd.DataFrame,
    *,
    rows: str | Sequence[str],
    xlabel: str = "",
    color: str = "model",
    style: str = "",
    panels: str = "",
    names: Names = NO_NAMES,
    reported: pd.DataFrame | None = None,
    limits: tuple[float | None, float | None] = (None, None),
    unit: str = "questions",
    title: str = "",
    caption: str = "",
) -> Figure:
    """Draws a row for each value of `rows` (of two columns, the first groups the rows under a
    heading), with n beside its name, and a mean with its interval for each of `color` and `style`;
    a panel for each value of `panels`.

    A table of paired differences has a column `baseline`: the axis then says which two arms are
    compared, each panel in its title where they differ. A table of means needs an `xlabel`. A
    column `n_label` has the text of n for tables whose metrics count different things, or "" where
    n is told elsewhere. `reported` are a paper's values, with the columns of `rows`, value and
    perhaps `panels`: small grey ticks.
    """
    keys = [rows] if isinstance(rows, str) else list(rows)
    looks = _looks(table, color, style, names)
    sizes = table.groupby(panels)["n"].agg(set) if panels else pd.Series([{0, 1}])
    apart = bool((sizes.map(len) == 1).all()) and table["n"].nunique() > 1  # n is in the titles
    lines = _rows(table.drop(columns="n") if apart else table, keys, names, unit)
    tallest = 0.03 + 0.13 * max((1 + label.count("\n") for _, label in lines), default=1)
    high = sum(max(tallest, 0.085 * len(looks) + 0.05) if line else 0.2 for line, _ in lines)
    count = len(_order(table, panels, names)) if panels else 1
    figure, axes = _panels(table, panels, names, PAGE, high + 1, "", wrap=max(3, count))
    places = {line: place for place, (line, _) in enumerate(lines) if line}
    for name, axis in axes.items():
        mine, shown = _in_panel(table, panels, name), _in_panel(reported, panels, name)
        for at, value in zip(_places(shown, keys, places), shown.get("value", ()), strict=True):
            axis.plot(value, at, "|", color=REPORTED, markersize=7, markeredgewidth=0.9, zorder=1)
        for shift, (values, look) in zip(dodge(len(looks)), looks.items(), strict=True):
            some = _of_series(mine, color, style, values)
            draw_interval(axis, _places(some, keys, places) + shift, some, look, flat=True)
        full = {*_places(mine.dropna(subset="value"), keys, places), *_places(shown, keys, places)}
        for at in set(places.values()) - full:
            text = axis.text(0.98, at, "no value", size=SMALL, color=GREY, ha="right", va="center")
            text.set_transform(axis.get_yaxis_transform())
        axis.axvline(0, color=DARK, linewidth=0.8, zorder=1)
        head = _operands(mine, panels, names, display_name(name, names) if panels else "")
        head += f" · {count_label(mine['n'], unit)}" if apart else ""
        axis.set_title(fit(head, (PAGE - 2.6) / len(axes), 8))
        axis.set_ylim(len(lines) - 0.4, -0.6)
        axis.grid(visible=False, axis="y")
    first = next(iter(axes.values()))
    first.set_yticks(range(len(lines)), [label for _, label in lines])
    for text, (line, _) in zip(first.get_yticklabels(), lines, strict=True):
        text.set_fontweight("normal" if line else "bold")
    _label_axes(figure, xlabel or _difference_label(table, panels, names), "")
    first.set_xlim(*limits)
    if sum(_draw_beyond(axis, flat=True) for axis in axes.values()):
        caption += " Arrows: beyond the axis."
    handles = _handles(looks, names, reported, "|") + _interval_handles(table)
    set_caption(figure, title, _naming_model(caption, title, table), handles)
    set_axes_height(figure, first, high)
    return figure


def _naming_model(caption: str, title: str, table: pd.DataFrame) -> str:
    """The caption, with the model of the table if there is one, and neither text names it."""
    models = set(table["model"].dropna()) if "model" in table else set()
    words = f" Model: {', '.join(map(str, models))}."
    named = len(models) != 1 or words[8:-1] in title + caption
    return caption if named else caption + words


def _interval_handles(table: pd.DataFrame) -> list[Line2D]:
    """The entries of a legend for intervals, thin ones and hollow points: only what is drawn."""
    drawn = table.dropna(subset="value")
    handles = []
    if "ci_low" in drawn and drawn["ci_low"].notna().any():
        few = bool((drawn["n"] < FEW).any())
        label = "95 % interval" + f" (thin: n below {FEW})" * few
        handles.append(Line2D([], [], color=DARK, linewidth=1.1, label=label))
    if has_failures(drawn).any():
        label = "some answers failed (thin line: possible means)"
        handles.append(
            Line2D([], [], color=DARK, linewidth=0.5, marker="o", fillstyle="none", label=label)
        )
    return handles


def _order(table: pd.DataFrame, column: str, names: Names) -> list[str]:
    """The values of a column, in the order of `names`, then as they come."""
    values = list(dict.fromkeys(table[column].astype(str)))
    named = [name for name in names if name in values]
    return [*named, *(value for value in values if value not in named)]


def _panels(
    table: pd.DataFrame,
    column: str,
    names: Names,
    width: float,
    height: float,
    unit: str,
    wrap: int = 3,
) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each value of a column, value → axes; with n in the titles where `unit`."""
    found = (_order(table, column, names) if column else []) or [""]
    across = min(wrap, len(found)) if len(found) != 4 else 2
    down = -(-len(found) // across)
    figure, grid = new_figure(
        down, across, width=width, height=down * height + 0.75, sharex=True, sharey=True
    )
    for axis in grid.flat[len(found) :]:
        axis.remove()
    for axis in grid.flat[len(found) - across : len(found)]:
        axis.tick_params(labelbottom=True)
    axes = dict(zip(found, grid.flat, strict=False))
    for name, axis in axes.items():
        mine = _in_panel(table, column, name)
        count = count_label(mine["n"], unit) if unit and mine["n"].notna().any() else ""
        head = display_name(name, names) if column else ""
        parts = [each for each in (head, count) if each]
        titles = [fit(sign.join(parts), width / across - 0.5, 8) for sign in (" · ", "\n")]
        axis.set_title(titles["\n" in titles[0]])  # n has a line of its own where it must wrap
    return figure, axes


def _in_panel(table: pd.DataFrame | None, column: str, name: str) -> pd.DataFrame:
    if table is None:
        return pd.DataFrame()
    return table[table[column].astype(str) == name] if column in table else table


def _looks(
    table: pd.DataFrame, color: str, style: str, names: Names, lines: Sequence[Dash] = ("",)
) -> dict[tuple[str, str], Series]:
    """A value of `color` and one of `style` → how its means are drawn."""
    colors = series_colors(color, _order(table, color, names))
    styles = _order(table, style, names) if style else [""]
    marks = dict(zip(styles, zip(MARKERS, cycle(lines)), strict=False))
    found = table[[color, style]] if style else table[[color]].assign(style="")
    pairs = set(found.astype(str).itertuples(index=False, name=None))
    every = product(colors, styles)
    return {pair: Series(colors[pair[0]], *marks[pair[1]]) for pair in every if pair in pairs}


def _of_series(
    table: pd.DataFrame, color: str, style: str, values: tuple[str, str]
) -> pd.DataFrame:
    some = table[table[color].astype(str) == values[0]]
    return some[some[style].astype(str) == values[1]] if style else some


def _side_by_side(
    series: Mapping[tuple[str, str], set[float]],
    ticks: Sequence[float],
    places: np.ndarray,
    apart: float,
) -> dict[tuple[tuple[str, str], float], float]:
    """A series and one of its x → its offset there: series that share an x are `apart`, or less
    where they would come near the next x.
    """
    gaps = np.diff(places, prepend=-np.inf, append=np.inf)
    shifts: dict[tuple[tuple[str, str], float], float] = {}
    for tick, gap in zip(ticks, np.minimum(gaps[:-1], gaps[1:]), strict=True):
        here = [key for key, found in series.items() if tick in found]
        offsets = dodge(len(here), min(apart * len(here), _DODGE * gap))
        shifts |= {(key, tick): offset for key, offset in zip(here, offsets, strict=True)}
    return shifts


def _tick_labels(ticks: Sequence[float], places: np.ndarray, inches: float) -> list[str]:
    """The numbers below an axis of a width in inches; one that would touch the last is lower."""
    gaps = np.diff(places, prepend=-np.inf) / max(1e-9, np.ptp(places)) * inches
    labels: list[str] = []
    for tick, gap in zip(ticks, gaps, strict=True):
        lower = gap < 0.17 and not labels[-1].startswith("\n")
        labels.append(f"\n{tick:g}" if lower else f"{tick:g}")
    return labels


def _write_at_right(axis: Axes, labels: Sequence[tuple[float, str, float]], last: float) -> None:
    """Writes texts at the right of an axis, each at the height of its line but apart, joined to
    the line's end: (height, text, x; NaN for the right of the axis). A line that ends before
    the x `last` has its text at its end.
    """
    early = sorted(each for each in labels if each[2] < last)
    for place, (height, label, x) in enumerate(early):
        above = 3 if place else -9
        axis.annotate(label, (x, height), (3, above), textcoords="offset points", size=SMALL)
    ordered = sorted(each for each in labels if not each[2] < last)
    heights = [height for height, *_ in ordered]
    low, high = min(heights, default=0), max(heights, default=0)
    gap = 0.075 * max(high, axis.get_ylim()[1])
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + gap)
    shift = max(0.0, (max(heights, default=0) - high) / 2) if low < high else 0.0
    right = axis.get_yaxis_transform()
    for at, (height, label, x) in zip(heights, ordered, strict=True):
        axis.annotate(
            label,
            (1 if np.isnan(x) else x, height),
            (1.03, at - shift),
            xycoords=right if np.isnan(x) else "data",
            textcoords=right,
            arrowprops={"arrowstyle": "-", "color": REPORTED, "linewidth": 0.4, "shrinkA": 1},
            fontsize=SMALL,
            va="center",
            color=DARK,
            annotation_clip=False,
        )


def _rows(
    table: pd.DataFrame, keys: Sequence[str], names: Names, unit: str
) -> list[tuple[tuple[str, ...], str]]:
    """Each row's key and label, with n if the table has it, in the first row with its unit, or
    with the text of a column n_label; headings have an empty key.
    """
    orders = [_order(table, key, names) for key in keys]
    found = table[list(keys)].astype(str).agg(tuple, axis=1)
    lines: list[tuple[tuple[str, ...], str]] = []
    group = ""
    for key in filter(set(found).__contains__, product(*orders)):
        if len(key) > 1 and key[0] != group:
            group = key[0]
            lines.append(((), display_name(group, names)))
        label = display_name(key[-1], names)
        mine = (found == key).to_numpy()
        if "n_label" in table:
            text = table.loc[mine, "n_label"].iloc[0]
            label += f" ({text})" * bool(text)
        elif "n" in table:
            counts = table.loc[mine, "n"]
            label += f" ({count_label(counts, unit)})"
            unit = ""  # in the first row only
        lines.append((key, fit(label, 2.5, 7.5)))
    return lines


def _places(
    table: pd.DataFrame, keys: Sequence[str], places: Mapping[tuple[str, ...], int]
) -> np.ndarray:
    """The place of each row of the table, from 0 at the top; NaN for one that is not drawn."""
    if table.empty:
        return np.array([])
    found = table[list(keys)].astype(str).itertuples(index=False, name=None)
    return np.array([places.get(key, np.nan) for key in found], float)


def _operands(table: pd.DataFrame, panels: str, names: Names, name: str) -> str:
    """The title of a panel: its two arms where the panels are the arms."""
    if panels != "setting" or "baseline" not in table or table["baseline"].nunique() != 1:
        return name
    return f"{name} − {display_name(table['baseline'].iloc[0], names)}"


def _difference_label(table: pd.DataFrame, panels: str, names: Names) -> str:
    """What the axis of differences shows: metric, operands and unit."""
    metrics = table["metric"].unique() if "metric" in table else ["accuracy"]
    what = display_name(metrics[0], names) if len(metrics) == 1 else ""
    arms = ""
    if panels != "setting":
        pairs = table[["setting", "baseline"]].drop_duplicates()
        if len(pairs) == 1:
            arms = " − ".join(display_name(arm, names) for arm in pairs.iloc[0])
        elif table["baseline"].nunique() == 1:
            arms = f"difference from {display_name(table['baseline'].iloc[0], names)}"
    head = arms or "Difference"
    if what:
        head = f"{what.capitalize()}, {arms}" if arms else f"Difference in {what}"
    return f"{head} (percentage points)"


def _label_axes(figure: Figure, xlabel: str, ylabel: str) -> None:
    """One label for all x axes and one for all y axes."""
    if xlabel:
        figure.supxlabel(xlabel, fontsize=8)
    if ylabel:
        figure.supylabel(ylabel, fontsize=8)


def _handles(
    looks: Mapping[tuple[str, str], Series],
    names: Names,
    reported: pd.DataFrame | None,
    mark: str = "",
) -> list[Line2D]:
    """The entries of the legend; none for a single series."""
    hues = {hue: look.color for (hue, _), look in looks.items()}
    kinds = {kind: look for (_, kind), look in looks.items()}
    marker = next(iter(kinds.values())).marker if len(kinds) == 1 else "o"
    shared = DARK if len(hues) > 1 else next(iter(hues.values()), DARK)
    entries: list[tuple[str, str, str, Dash]] = [
        (hue, color, marker, "") for hue, color in hues.items() if len(hues) > 1
    ]
    if len(kinds) > 1:
        entries += [(kind, shared, look.marker, look.line) for kind, look in kinds.items()]
    handles = [
        Line2D([], [], color=hue, marker=point, linestyle=dash, label=display_name(name, names))
        for name, hue, point, dash in entries
    ]
    if reported is not None and len(reported):
        label = names.get("reported", "reported (the paper's data)")
        line = Line2D([], [], color=REPORTED, label=label, linewidth=0.8)
        line.set(marker=mark, fillstyle="none", linestyle="" if mark else "-")
        handles.append(line)
    return handles
