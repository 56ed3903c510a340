"""Figure of gCUE over k, one panel per source, for computed and published numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import (
    Mark,
    dodge,
    draw_means,
    interval_note,
    legends_below,
    numeric_axis,
    point_size,
    wrap_title,
)
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure

_RANGE = (-1.0, 3.0)
_PANEL = 4.6  # inches from a panel to the next
_NO_BREAK = "\N{NO-BREAK SPACE}"
_STEP = 0.3  # between models, in images


def gcue_figure(sources: Mapping[str, pd.DataFrame], *, lam: float = 0.5) -> Figure:
    """Draws gCUE at one λ over k, one panel per source (title → table of `gcue`). All panels share
    one y axis, which ends at −1 and 3 at most.

    Bars are 95 % Fieller intervals; one that is cut says where it ends. Points outside
    the axis sit at its edge as triangles, with their value. Points are hollow where
    answers failed. Models for which a clue may not help have no ratio, and are named
    below the panel, with the reason.
    """
    shown = {title: table[table["lambda"] == lam] for title, table in sources.items()}
    within = _within(pd.concat(list(shown.values())))
    figure, axes = new_figure(1, len(shown), (_PANEL * len(shown), 5.0), sharey=True)
    for axis, (title, table) in zip(axes[0], shown.items(), strict=True):
        _panel(axis, table, within)
        axis.set(
            title=wrap_title(panel_title(title, table), _PANEL), xlabel="images shown, k (one clue)"
        )
        axis.tick_params(labelleft=True)
    axes[0][0].set(ylabel=f"gCUE (λ = {lam:g})", ylim=within)
    legends_below(axes[0], _PANEL)
    said = [interval_note(list(shown.values())), _lines(pd.concat(list(shown.values())), within)]
    lines = [wrap_title(line, _PANEL * len(shown)) for line in "\n".join(said).splitlines()]
    figure.supxlabel("\n".join(lines), fontsize=9)
    return figure


def _lines(table: pd.DataFrame, within: tuple[float, float]) -> str:
    """What the lines across the panels say, and the marks at their edges, if any."""
    said = "1: full benefit of one clue; 0 (dotted): none."
    ends = table[["ci_low", "ci_high"]].to_numpy(float)
    if np.any(ends[:, 0] < within[0]) or np.any(ends[:, 1] > within[1]):
        said += "\nNumbers at an edge: where a bar that is cut ends (∞: it has no end)."
    if np.any((table["value"] < within[0]) | (table["value"] > within[1])):
        said += "\nTriangles at an edge: means beyond it, with their value."
    return said


def _within(table: pd.DataFrame) -> tuple[float, float]:
    """The y axis: as far as values and bounds reach, never beyond `_RANGE`."""
    numbers = table[["value", "ci_low", "ci_high"]].to_numpy(float)
    low, high = np.nanmin([0.0, *numbers.ravel()]), np.nanmax([1.1, *numbers.ravel()])
    return max(_RANGE[0], float(low) - 0.1), min(_RANGE[1], float(high) + 0.1)


def _panel(axis: Axes, table: pd.DataFrame, within: tuple[float, float]) -> None:
    axis.axhline(1, color=DARK, linewidth=1)
    axis.axhline(0, color=DARK, linewidth=1, linestyle=":")
    colors = model_colors(table["model"])
    step, size = min(_STEP, 0.9 / len(colors)), point_size(len(colors))
    for shift, (model, color) in zip(dodge(len(colors), step), colors.items(), strict=True):
        line = table[table["model"] == model].sort_values("k")
        look = Mark(color, line="-", size=size, within=within)
        draw_means(axis, line["k"].to_numpy(float) + shift, line, look)
        axis.plot([], [], "o-", color=color, label=f"{model}{_without(line)}")
    numeric_axis(axis, table["k"])


def _without(line: pd.DataFrame) -> str:
    """Why a model has no ratio, and the benefit of its clue; "" where it has one."""
    if line["value"].notna().any():
        return ""
    first = line.iloc[0]
    why, ends = first["interval"], first[["denominator", "denominator_low", "denominator_high"]]
    if ends.notna().all():
        benefit = f"A_GT − B = {format_ci(*ends, decimals=2)}".replace("-", "−")
        why += f"; {benefit.replace(' ', _NO_BREAK)}"
    return f" (gCUE undefined: {why})"
