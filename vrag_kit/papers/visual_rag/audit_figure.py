"""What an audit of the paper's tables finds, in two pictures."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.visual_rag.audit_rows import ROUNDING
from vrag_kit.papers.visual_rag.printed import PAPER_QUERIES
from vrag_kit.plotting.style import DARK, GREY, PALETTE, colors_of, new_figure

_WITHIN = 0.08  # shifts models beside one another, in steps of k


def audit_figure(runs: pd.DataFrame, bounds: pd.DataFrame) -> Figure:
    """Left: the printed average of Table 15 less that of its runs, by model and k
    (`run_statistics`). Right: printed nDCG@30 and its upper bounds (`ndcg_bounds`).

    Averages that do not fit carry both numbers; models without any printed average say
    so in the legend. A bound that does not exist (NaN) is not drawn.
    """
    figure, (axes,) = new_figure(1, 2, (13, 4.9), width_ratios=(1.25, 1))
    _averages(axes[0], runs)
    _upper_bounds(axes[1], bounds)
    return figure


def _averages(axis: Axes, runs: pd.DataFrame) -> None:
    ticks, colors = sorted(runs["k"].unique()), colors_of(runs["model"])
    for shift, (model, cells) in enumerate(
        runs.groupby("model", sort=False), start=-len(colors) // 2
    ):
        x, difference = cells["k"].map(ticks.index) + shift * _WITHIN, cells["avg"] - cells["mean"]
        absent = cells["avg"].isna().all()
        axis.plot(
            x,
            difference,
            "o",
            color=colors[str(model)],
            markersize=7,
            label=f"{model} (average absent)" if absent else model,
            clip_on=False,
        )
        for at, off, row in zip(x, difference, cells.to_dict("records"), strict=True):
            if abs(off) > ROUNDING["avg"]:
                axis.annotate(
                    f"printed {row['avg']:.2f}\nruns {row['mean']:.2f}",
                    (at, off),
                    (8, 0),
                    textcoords="offset points",
                    fontsize=9,
                    va="center",
                )
    axis.axhline(0, color=DARK, linewidth=1, zorder=0)
    axis.set_xticks(range(len(ticks)), [f"{k:g}" for k in ticks])
    axis.set(
        title="Table 15: printed average less that of its runs",
        xlabel=f"images shown, k (each average: 5 runs, n = {PAPER_QUERIES} queries)",
        ylabel="difference (points)",
        xlim=(-0.5, len(ticks) - 0.2),
    )
    axis.margins(y=0.15)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, fontsize=9)


def _upper_bounds(axis: Axes, bounds: pd.DataFrame) -> None:
    retrievers = list(dict.fromkeys(bounds["retriever"]))
    given = list(dict.fromkeys(bounds["given"]))
    for row, (name, part) in enumerate(bounds.groupby("given", sort=False)):
        at = [
            retrievers.index(retriever) + 0.36 * (row - (len(given) - 1) / 2)
            for retriever in part["retriever"]
        ]
        bars = axis.barh(
            at,
            part["bound"].fillna(0),
            height=0.3,
            color=(PALETTE[5], GREY)[row % 2],
            alpha=0.55,
            label=f"within reach, given {name}",
        )
        axis.bar_label(
            bars,
            [f"{bound:.1f} " if pd.notna(bound) else "" for bound in part["bound"]],
            padding=-30,
            fontsize=9,
        )
    printed = bounds.drop_duplicates("retriever")
    axis.plot(
        printed["printed"],
        range(len(printed)),
        "D",
        color=PALETTE[1],
        markersize=9,
        label="printed",
    )
    for y, value in enumerate(printed["printed"]):
        axis.annotate(
            f"{value:.2f}", (value, y), (9, 0), textcoords="offset points", fontsize=9, va="center"
        )
    axis.set_yticks(range(len(retrievers)), retrievers)
    axis.invert_yaxis()
    axis.set(
        title="Table 2: nDCG@30 against its upper bound",
        xlabel=f"nDCG@30 (%), n = {PAPER_QUERIES} queries",
        xlim=(0, 1.2 * bounds["printed"].max()),
    )
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), fontsize=9)
