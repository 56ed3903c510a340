"""Recall of text-to-image against text-to-caption retrieval over k; ours and the paper's numbers go through the same function."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vrag_kit.plotting.style import colors_of, new_figure

TASK_NAMES = {"t2i": "question to image", "t2t": "question to caption"}


def captions_figure(sources: Mapping[str, pd.DataFrame]) -> Figure:
    """Table 4 as curves over k, one panel a source: title → table with retriever, task, k, value, in percent, and where there are any ci_low, ci_high and n.

    Captions are drawn solid, images dashed, both in the colour of their retriever; rows of any other task (the random order) dotted and without an interval.
    """
    figure, axes = new_figure(1, len(sources), (5.2 * len(sources), 4.6), sharey=True)
    colors = colors_of(name for table in sources.values() for name in table["retriever"])
    for axis, (title, table) in zip(axes[0], sources.items(), strict=True):
        for (retriever, task), line in table.sort_values("k").groupby(["retriever", "task"], sort=False):
            color = colors[str(retriever)]
            style, label = {"t2i": "o--", "t2t": "o-"}.get(task, ":"), f"{retriever}: {TASK_NAMES[task]}" if task in TASK_NAMES else str(retriever)
            axis.plot(line["k"], line["value"], style, color=color, markerfacecolor="white" if task == "t2i" else color, linewidth=2, markersize=6, label=label)
            if task in TASK_NAMES and "ci_low" in line:
                axis.fill_between(line["k"], line["ci_low"], line["ci_high"], color=color, alpha=0.13, linewidth=0)
        ticks = sorted(table["k"].unique())
        axis.set(title=f"{title} (n = {int(table['n'].max())})" if "n" in table else title, xscale="log", xlabel="documents retrieved, k", ylabel="Recall (%)", ylim=(0, 103))
        axis.set_xticks(ticks, [str(k) for k in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.tick_params(labelleft=True)
    entries = {label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, fontsize=9)
    return figure
