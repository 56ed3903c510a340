"""Point plot of means by category: one above each name, one panel per table."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import draw_categories, interval_note, percent_limits
from vrag_kit.plotting.old_style import DARK, model_colors, new_figure


def old_points(
    sources: Mapping[str, pd.DataFrame],
    names: Mapping[str, str],
    *,
    by: str,
    xlabel: str,
    ylabel: str,
    lines: Mapping[str, float] | None = None,
) -> Figure:
    """Draws one panel per source (title → table with model, `by`, value, ci_low, ci_high, n, in
    percent): the mean of each model above each of `names` (value of `by` → its title), all on one y
    axis. `lines` (name → value) are horizontal lines, such as chance.

    Bars are 95 % intervals; a point is hollow where answers failed (`draw_means`).
    """
    width = 0.6 * len(names) + 1.6
    figure, (axes,) = new_figure(1, len(sources), (width * len(sources), 4.2), sharey=True)
    shown = [table[table[by].isin(list(names))] for table in sources.values()]
    colors: dict[str, str] = {}
    for axis, title, table in zip(axes, sources, shown, strict=True):
        draw_categories(axis, table, names, by)
        for line in (lines or {}).values():
            axis.axhline(line, color=DARK, linewidth=1, linestyle=":")
        axis.set(title=panel_title(title, table), xlabel=xlabel)
        axis.tick_params(labelleft=True)
        colors |= model_colors(table["model"])
    axes[0].set(ylabel=ylabel, ylim=percent_limits(shown))
    for model, color in colors.items():
        axes[0].plot([], [], color=color, linewidth=4, label=model)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    told = [
        interval_note(shown),
        *(f"Dotted: {name} ({line:g})." for name, line in (lines or {}).items()),
    ]
    figure.suptitle("\n".join(told), fontsize=9)
    return figure
