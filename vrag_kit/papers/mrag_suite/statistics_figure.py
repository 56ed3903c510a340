"""Table 1 as a picture, and one question of each data set with what answers it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.retrieval import show_picture
from vrag_kit.plotting.style import CLUE, DARK, GREY, PALETTE, new_figure
from vrag_kit.types import Benchmark, Query

_PANELS = {  # metric → (title, unit, whether the axis is logarithmic)
    "n_full": ("Questions", "questions, logarithmic", True),
    "avg_image_width_px": ("Width of a picture that answers", "pixels, mean", False),
    "avg_question_length": ("Length of a question", "words, mean", False),
    "avg_answer_length": ("Length of an answer", "words, mean", False),
}
_COLUMNS = 4


def statistics_figure(statistics: pd.DataFrame) -> Figure:
    """A panel for each of four numbers, data sets down: bars are ours, diamonds what the
    paper prints; at the right how many questions there are, or what a mean is over.
    `statistics` as `suite_statistics` gives them.
    """
    names = list(dict.fromkeys(statistics["dataset"]))
    size = (3.7 * len(_PANELS), 1.6 + 0.42 * len(names))
    figure, (axes,) = new_figure(1, len(_PANELS), size, sharey=True)
    for axis, (metric, (title, unit, logarithmic)) in zip(axes, _PANELS.items(), strict=True):
        part = statistics[statistics["metric"] == metric].set_index("dataset").reindex(names)
        _panel(axis, part, logarithmic)
        axis.set(title=title, xlabel=unit)
    axes[0].set_yticks(np.arange(len(names)), names)
    axes[0].invert_yaxis()
    marks, names = axes[0].get_legend_handles_labels()
    figure.legend(marks, names, loc="outside lower center", ncols=2, fontsize=10)
    return figure


def one_of_each_figure(suite: Mapping[str, Benchmark]) -> Figure:
    """A question of each data set, the first that needs both pictures and texts, else
    the first: a document that answers it, one with a picture where there is any, the
    question, and its first accepted answer.
    """
    rows = max(1, -(-len(suite) // _COLUMNS))
    figure, axes = new_figure(rows, _COLUMNS, (3.2 * _COLUMNS, 4.5 * rows))
    for axis in axes.flat[len(suite) :]:
        axis.set_axis_off()
    for axis, (name, benchmark) in zip(axes.flat, suite.items(), strict=False):
        _one(axis, name, benchmark)
    figure.supxlabel("Framed: a document that answers. →: an accepted answer.", fontsize=9)
    return figure


def _panel(axis: Axes, part: pd.DataFrame, logarithmic: bool) -> None:
    rows = np.arange(len(part))
    axis.barh(rows, part["value"], 0.7, color=PALETTE[0], label="here")
    axis.plot(part["paper"], rows, "D", color=DARK, markersize=5, label="as printed (Table 1)")
    at_the_right = axis.get_yaxis_transform()
    for row, value, n in zip(rows, part["value"], part["n"], strict=True):
        told = f"{value:,.0f}" if np.isnan(n) else f"n = {n:,.0f}"
        axis.text(1, float(row), told, fontsize=8, ha="right", va="center", transform=at_the_right)
    if logarithmic:
        axis.set_xscale("log")
    axis.margins(x=0.32)
    axis.grid(axis="y", visible=False)


def _one(axis: Axes, name: str, benchmark: Benchmark) -> None:
    found = _answered(benchmark)
    if found is None:
        axis.set_axis_off()
        return
    query, doc_id = found
    document = benchmark.corpus[doc_id]
    show_picture(axis, document.image, name, CLUE)
    if document.image is None:
        words = textwrap.fill(document.text or "", 34, max_lines=12)
        axis.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, transform=axis.transAxes)
    answer = query.answers[0] if query.answers else ""
    asked = textwrap.fill(query.text, 46, max_lines=4)
    told = textwrap.fill(f"→ {answer}", 46, max_lines=2)
    axis.set_xlabel(f"{asked}\n{told}", fontsize=8, color=DARK if answer else GREY)


def _answered(benchmark: Benchmark) -> tuple[Query, str] | None:
    """The question to show, and a document that answers it; None where nothing does."""
    queries = sorted(benchmark.queries.values(), key=lambda each: each.metadata["needs"] != "both")
    for query in queries:
        gold = [
            doc_id for doc_id in benchmark.relevant(query.query_id) if doc_id in benchmark.corpus
        ]
        if gold:
            return query, min(gold, key=lambda doc_id: benchmark.corpus[doc_id].modality)
    return None
