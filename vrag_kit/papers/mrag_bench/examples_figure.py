"""Figure of one example question per scenario, as in the paper's Figure 3."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import cast

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_bench.turned import SETTINGS, scores_by_setting
from vrag_kit.plotting.old_style import CLUE, GREY, new_figure
from vrag_kit.plotting.retrieval import ASKED, draw_image
from vrag_kit.types import Benchmark, Query

_WIDTH = 26  # letters of a line below a picture
_LINE = 0.13  # inches that it is high


def examples_figure(
    benchmark: Benchmark, judged: pd.DataFrame, query_ids: Sequence[str], model: str
) -> Figure:
    """Plots a column for each question: its image, a ground-truth one, the first retrieved one
    (green frame: ground truth), its text and options (the correct one marked), and the model's
    outcome (✓, ✗, – for none).
    """
    scores = scores_by_setting(judged[judged["model"] == model]).set_index("query_id")
    columns = len(query_ids)
    words = [
        _words(benchmark.queries[each], cast(Mapping[str, float], scores.loc[each]))
        for each in query_ids
    ]
    lines = max(text.count("\n") + 1 for text in words)
    figure, axes = new_figure(3, columns, (1.75 * columns, 6.6 + _LINE * lines))
    for column, query_id, text in zip(axes.T, query_ids, words, strict=True):
        query = benchmark.queries[query_id]
        relevant = benchmark.relevant(query_id)
        draw_image(column[0], query.image, f"{query.metadata['scenario']}\n{ASKED}", GREY)
        _document(column[1], benchmark, relevant[:1], relevant, "ground truth")
        found = tuple(query.metadata.get("retrieved", ()))[:1]
        _document(column[2], benchmark, found, relevant, "retrieved first")
        column[2].set_xlabel(text, fontsize=7.5, loc="left")
    figure.suptitle(f"{benchmark.name}: one question of each scenario, answered by {model}")
    figure.supxlabel(
        f"←: the right option. ✓ right, ✗ wrong, – not asked, with: {', '.join(SETTINGS.values())}."
        " Green frame: a ground-truth picture.",
        fontsize=9,
    )
    return figure


def _document(
    axis: Axes, benchmark: Benchmark, shown: tuple[str, ...], relevant: tuple[str, ...], title: str
) -> None:
    """The first of the documents, if there is any."""
    if not shown:
        axis.set_axis_off()
        return
    frame = CLUE if shown[0] in relevant else GREY
    draw_image(axis, benchmark.corpus[shown[0]].image, title, frame)


def _words(query: Query, scores: Mapping[str, float]) -> str:
    """The question, its options and the model's marks, as lines."""
    lines = textwrap.wrap(query.text, _WIDTH)
    for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
        mark = "\u00a0←" if choice in query.answers else ""
        lines += textwrap.wrap(f"({letter}) {choice}{mark}", _WIDTH, subsequent_indent="      ")
    lines += [f"{_mark(scores[setting])} {name}" for setting, name in SETTINGS.items()]
    return "\n".join(lines)


def _mark(score: float) -> str:
    if pd.isna(score):
        return "–"
    return "✓" if score > 0 else "✗"
