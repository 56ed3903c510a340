"""Figure of recall over k by text-to-image and by text-to-caption retrieval. The same function
draws computed and published numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vrag_kit.plotting.old_panels import legends_below
from vrag_kit.plotting.old_style import model_colors, new_figure
from vrag_kit.types import Benchmark

TASK_NAMES = {"t2i": "text-to-image (t2i)", "t2t": "text-to-text (t2t)"}


def caption_retrieval_figure(sources: Mapping[str, pd.DataFrame], benchmark: Benchmark) -> Figure:
    """Draws curves over k, one panel per source: title → table with retriever, task, k, value, in
    percent, and optionally ci_low, ci_high and n.

    Captions are drawn solid, images dashed, both in the colour of their retriever; rows of any
    other task (the random order) dotted. The legend of a panel goes retriever by retriever, and
    says n. Lines with intervals (bars) are shifted a little to keep the bars distinct. Intervals
    are over the groups of `benchmark`.
    """
    figure, axes = new_figure(1, len(sources), (5.6 * len(sources), 5.4), sharey=True)
    colors = model_colors(pd.concat([table["retriever"] for table in sources.values()]))
    for axis, (title, table) in zip(axes[0], sources.items(), strict=True):
        lines = _in_order(table)
        for number, line in enumerate(lines):
            apart = 1.035 ** (number - (len(lines) - 1) / 2)
            _line(axis, line, colors[str(line["retriever"].iloc[0])], apart)
        ticks = sorted(table["k"].unique())
        axis.set(title=title, xscale="log", xlabel="documents retrieved, k")
        axis.set(ylabel="Recall (%)", ylim=(0, 103))
        axis.set_xticks(ticks, [str(k) for k in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.tick_params(labelleft=True)
    legends_below(axes[0], 5.6, most=1, down=-0.17, room=6)
    for axis, table in zip(axes[0], sources.values(), strict=True):
        n = f"n = {int(table['n'].max())} questions" if "n" in table else "n not reported"
        axis.get_legend().set_title(n, prop={"size": 9})
    figure.suptitle(
        f"Mean over questions; bars are 95 % intervals over {benchmark.groups_are} (none for"
        " reported numbers)",
        fontsize=10,
    )
    return figure


def _in_order(table: pd.DataFrame) -> list[pd.DataFrame]:
    """The lines, retriever by retriever, images before captions, and what is neither
    last.
    """
    tasks = {task: place for place, task in enumerate(TASK_NAMES)}
    retrievers = list(dict.fromkeys(table["retriever"]))
    ordered = table.assign(
        known=table["task"].map(tasks).fillna(len(tasks)),
        place=table["retriever"].map(retrievers.index),
    )
    ordered["last"] = ordered["known"] == len(tasks)
    groups = ordered.sort_values("k").groupby(["last", "place", "known"])
    return [line for _, line in groups]


def _line(axis: Axes, line: pd.DataFrame, color: str, apart: float) -> None:
    """One retriever's recall in one task, with bars where there are intervals."""
    name, task = str(line["retriever"].iloc[0]), str(line["task"].iloc[0])
    known = task in TASK_NAMES
    bars = known and "ci_low" in line
    x = line["k"] * (apart if bars else 1.0)
    axis.plot(
        x,
        line["value"],
        {"t2i": "s--", "t2t": "o-"}.get(task, ":"),
        color=color,
        linewidth=2,
        markersize=6,
        label=f"{name}: {TASK_NAMES[task]}" if known else name,
    )
    if bars:
        axis.vlines(x, line["ci_low"], line["ci_high"], color=color, linewidth=1.4, alpha=0.7)
