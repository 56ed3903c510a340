"""Figures of counterfactual images below the original ones, and of the outcomes of answers to
either and to no image.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.old_panels import Mark, draw_means, interval_note
from vrag_kit.plotting.old_style import CLUE, DARK, PALETTE, model_colors, new_figure
from vrag_kit.plotting.retrieval import draw_document_image
from vrag_kit.types import Benchmark, Context

_MARKS = {"original": "o", "counterfactual": "s", "none": "X"}
"""The mark of each picture."""
_NAMES = {
    "original": "original clue",
    "counterfactual": "counterfactual clue",
    "none": "no image",
}


def counterfactual_images(
    benchmark: Benchmark,
    world: Benchmark,
    pairs: Sequence[tuple[Context, Context]],
) -> Figure:
    """Draws the first image of up to six contexts, spread evenly over `pairs`, above that of the
    same contexts in another `world`. Each is titled with the answer that it shows.
    """
    step = max(1, len(pairs) // 6)
    chosen = list(pairs)[::step][:6]
    figure, axes = new_figure(2, len(chosen), (1.75 * len(chosen), 4.1))
    for (above, below), pair in zip(axes.T, chosen, strict=True):
        rows = ((above, benchmark, pair[0], CLUE), (below, world, pair[1], PALETTE[1]))
        for axis, place, context, color in rows:
            answer = place.queries[context.query_id].answers[0]
            draw_document_image(axis, place, context.doc_ids[0], answer, color)
    axes[0, 0].set_ylabel("original clue")
    axes[1, 0].set_ylabel("counterfactual")
    return figure


def outcome_shares_figure(shares: pd.DataFrame, *, panels: str, title: str = "") -> Figure:
    """Draws one panel per value of the column `panels`: the share of each model's answers with each
    outcome (column metric), for each `image` ("original", "counterfactual", "none").

    `shares` are means in percent with ci_low, ci_high and n, as `column_means` gives
    them; bars are 95 % intervals, a point is hollow where answers failed.
    """
    names = list(dict.fromkeys(shares[panels]))
    things, colors = list(dict.fromkeys(shares["metric"])), model_colors(shares["model"])
    pictures = [name for name in _MARKS if name in set(shares["image"])]
    width = 1.4 + 0.22 * len(colors) * len(pictures) * len(things)
    figure, axes = new_figure(1, len(names), (max(4.0, width) * len(names), 4.6), sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        panel = shares[shares[panels] == name]
        _points(axis, panel, things, pictures, colors)
        axis.set(title=panel_title(str(name), panel), ylabel="answers (%)", ylim=(-3, 103))
        axis.set_xticks(range(len(things)), [_broken(thing) for thing in things], fontsize=10)
        axis.set_xlim(-0.6, len(things) - 0.4)
        axis.grid(axis="x", visible=False)
        axis.yaxis.set_tick_params(labelleft=True)
    models = [
        Line2D([], [], color=color, linewidth=4, label=model) for model, color in colors.items()
    ]
    marks = [
        Line2D([], [], color=DARK, linestyle="", marker=_MARKS[each], label=_NAMES[each])
        for each in pictures
    ]
    figure.legend(handles=[*models, *marks], loc="outside lower center", ncols=5, fontsize=9)
    figure.suptitle(f"{title}\n{interval_note([shares])}".strip(), fontsize=10)
    return figure


def _points(
    axis: Axes, panel: pd.DataFrame, things: list[str], pictures: list[str], colors: dict[str, str]
) -> None:
    """One mark a model, picture and thing, side by side over the thing's name."""
    arms = list(product(pictures, colors))
    places = np.linspace(-0.32, 0.32, len(arms)) if len(arms) > 1 else np.zeros(1)
    for (picture, model), place in zip(arms, places, strict=True):
        mine = panel[(panel["model"] == model) & (panel["image"] == picture)]
        rows = mine.set_index("metric").reindex(things)
        x = np.arange(len(things)) + place
        draw_means(axis, x, rows, Mark(colors[model], _MARKS[picture]))


def _broken(words: str) -> str:
    """Words of a tick on two lines."""
    return words.replace("_", "\n")
