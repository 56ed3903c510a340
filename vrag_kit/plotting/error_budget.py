"""Lost points by cause, stacked over the number of images."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.style import GREY, PALETTE, new_figure

_COLORS = {
    "no clue retrieved": PALETTE[5],
    "clue misread even alone": PALETTE[4],
    "clue ignored or contradicted": PALETTE[3],
    "judge in doubt": GREY,
}
_COLUMNS = 4


def budget_figure(budget: pd.DataFrame) -> Figure:
    """One panel a model: for each k a bar of the points lost to each cause, in percent;
    what is white up to 100 is accuracy. Takes `in_percent(mean_budget(…))`.
    """
    models = list(dict.fromkeys(budget["model"]))
    columns = min(_COLUMNS, len(models))
    rows = -(-len(models) // columns)
    figure, axes = new_figure(
        rows, columns, (max(7.0, 4.6 * columns), 3.9 * rows + 0.7), sharey=True
    )
    for axis in axes.flat[len(models) :]:
        axis.axis("off")
    for axis, model in zip(axes.flat, models, strict=False):
        table = (
            budget[budget["model"] == model]
            .pivot_table(index="k", columns="cause", values="value", sort=False)
            .reindex(columns=list(_COLORS))
            .sort_index()
        )
        bottom = pd.Series(0.0, table.index)
        for cause, color in _COLORS.items():
            axis.bar(
                range(len(table)), table[cause], bottom=bottom, width=0.78, color=color, label=cause
            )
            bottom = bottom + table[cause].fillna(0.0)
        axis.set_xticks(range(len(table)), [str(k) for k in table.index])
        axis.set(
            title=panel_title(model, budget[budget["model"] == model]),
            xlabel="images shown, the first k retrieved",
            ylabel="points lost a question (of 100)",
            ylim=(0, 100),
        )
        axis.grid(axis="x", visible=False)
        axis.yaxis.set_tick_params(labelleft=True)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    return figure
