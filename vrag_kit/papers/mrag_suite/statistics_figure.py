"""Figures of Table 1, and of one question per data set with its gold document."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.old_style import CLUE, DARK, GREY, PALETTE, new_figure
from vrag_kit.plotting.retrieval import draw_image
from vrag_kit.types import Benchmark, Document, Query

_PANELS = {  # metric → (title, unit, whether the axis is logarithmic)
    "n_full": ("Questions", "questions, logarithmic", True),
    "avg_image_width_px": ("Gold image width", "pixels, mean", False),
    "avg_question_length": ("Question length", "words, mean", False),
    "avg_answer_length": ("Answer length", "words, mean", False),
}
_COLUMNS = 4
_LINE = 0.145  # inches of a line below a picture


def statistics_figure(statistics: pd.DataFrame) -> Figure:
    """Plots four statistics, one panel each, with data sets as rows: bars are ours, diamonds the
    paper's; at the right is the number of questions, or the n of a mean. `statistics` comes from
    `describe_suite`.
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


def example_per_dataset_figure(suite: Mapping[str, Benchmark]) -> Figure:
    """Plots a question of each data set, the first that needs both images and texts, else the
    first. Shown are a gold document, with an image if there is any, the question, and its first
    accepted answer.
    """
    rows = max(1, -(-len(suite) // _COLUMNS))
    shown = {name: _answered(benchmark) for name, benchmark in suite.items()}
    words = {name: _words(one[0]) if one else "" for name, one in shown.items()}
    lines = max((text.count("\n") + 1 for text in words.values()), default=1)
    height = 3.6 + _LINE * lines
    figure, axes = new_figure(rows, _COLUMNS, (3.2 * _COLUMNS, height * rows + 0.3))
    for axis in axes.flat[len(suite) :]:
        axis.set_axis_off()
    for axis, (name, one) in zip(axes.flat, shown.items(), strict=False):
        if one is None:
            axis.set_axis_off()
            continue
        _document(axis, name, suite[name].corpus[one[1]])
        color = DARK if one[0].answers else GREY
        axis.set_xlabel(words[name], fontsize=8, color=color)
    figure.supxlabel("Framed: gold document; →: accepted answer", fontsize=9)
    return figure


def _panel(axis: Axes, part: pd.DataFrame, logarithmic: bool) -> None:
    rows = np.arange(len(part))
    axis.barh(rows, part["value"], 0.7, color=PALETTE[0], label="ours")
    axis.plot(part["published"], rows, "D", color=DARK, markersize=5, label="reported (Table 1)")
    at_the_right = axis.get_yaxis_transform()
    for row, value, n in zip(rows, part["value"], part["n"], strict=True):
        told = f"{value:,.0f}" if np.isnan(n) else f"n = {n:,.0f}"
        axis.text(1, float(row), told, fontsize=8, ha="right", va="center", transform=at_the_right)
    if logarithmic:
        axis.set_xscale("log")
    axis.margins(x=0.32)
    axis.grid(axis="y", visible=False)


def _document(axis: Axes, name: str, document: Document) -> None:
    draw_image(axis, document.image, name, CLUE)
    if document.image is None:
        words = textwrap.fill(document.text or "", 34, max_lines=12, placeholder=" (and more)")
        axis.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, transform=axis.transAxes)


def _words(query: Query) -> str:
    """The question and its first accepted answer, as lines."""
    answer = query.answers[0] if query.answers else ""
    return f"{textwrap.fill(query.text, 46)}\n{textwrap.fill(f'→ {answer}', 46)}"


def _answered(benchmark: Benchmark) -> tuple[Query, str] | None:
    """The question to show, and a document that answers it; None where nothing does."""
    queries = sorted(
        benchmark.queries.values(), key=lambda each: each.metadata["required_modality"] != "both"
    )
    for query in queries:
        gold = [
            doc_id for doc_id in benchmark.relevant(query.query_id) if doc_id in benchmark.corpus
        ]
        if gold:
            return query, min(gold, key=lambda doc_id: benchmark.corpus[doc_id].modality)
    return None
