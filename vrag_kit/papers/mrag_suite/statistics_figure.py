"""Figures of Table 1, and of one question per data set with its gold document."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting.images import Tile, image_grid
from vrag_kit.plotting.panels import Series, draw_interval
from vrag_kit.plotting.style import MODEL, REPORTED, new_figure, set_caption
from vrag_kit.types import Benchmark, Query

_PANELS = {
    "n_full": "Questions\n(log scale)",
    "avg_image_width_px": "Mean image width\n(pixels)",
    "avg_question_length": "Mean length of\na question (words)",
    "avg_answer_length": "Mean length of\nan answer (words)",
}

_REPORTED = "reported (Table 1, the paper's data)"


def statistics_figure(statistics: pd.DataFrame) -> Figure:
    """Draws the number of questions and three means of each data set, a panel each, with the
    paper's as grey diamonds. `statistics` comes from `describe_suite`.
    """
    names = list(dict.fromkeys(statistics["dataset"]))
    figure, (axes,) = new_figure(1, len(_PANELS), height=0.24 * len(names) + 1.1, sharey=True)
    for axis, (metric, panel) in zip(axes, _PANELS.items(), strict=True):
        part = statistics[statistics["metric"] == metric].set_index("dataset").reindex(names)
        rows = np.arange(len(part), dtype=float)
        axis.plot(part["published"], rows, "D", color=REPORTED, markersize=4, fillstyle="none")
        draw_interval(axis, rows, part, Series(MODEL[0]), flat=True)
        axis.set_title(panel)
        axis.margins(x=0.12)
        axis.set_xscale("log" if metric == "n_full" else "linear")
        axis.xaxis.set_major_formatter("{x:,.0f}")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    sizes = statistics[statistics["metric"] == "n_full"]
    title = f"A data set holds {_reach(sizes['value'])} questions"
    if sizes["published"].notna().any():
        title += f", the paper's {_reach(sizes['published'])}"
    handles = [
        Line2D([], [], color=MODEL[0], marker="o", ls="", label="these data sets"),
        Line2D([], [], color=REPORTED, marker="D", ls="", fillstyle="none", label=_REPORTED),
    ]
    caption = "Widths are means over gold images, lengths over questions; n is in the table."
    set_caption(figure, title, caption, handles)
    return figure


def _reach(counts: pd.Series) -> str:
    return f"{counts.min():,.0f} to {counts.max():,.0f}"


def example_per_dataset_figure(suite: Mapping[str, Benchmark]) -> Figure:
    """Draws a question of each data set, the first that needs both images and texts, else the
    first: a gold document, with an image if there is any, the question, and its first accepted
    answer. A data set without gold documents is left out.
    """
    tiles = []
    for name, benchmark in suite.items():
        if (found := _answered(benchmark)) is not None:
            query, document = found[0], benchmark.corpus[found[1]]
            passage = "" if document.image else document.text or ""
            answer = f"→ {query.answers[0]}" if query.answers else ""
            below = "\n".join(
                shorten(words, most, placeholder=" …")
                for words, most in ((passage, 170), (query.text, 230), (answer, 80))
            )
            tiles.append(Tile(document.image, name, below))
    rows = {" " * place: tiles[place : place + 4] for place in range(0, len(tiles), 4)}
    images = sum(tile.image is not None for tile in tiles)
    title = f"In {images} of {len(tiles)} data sets an image answers the example (→: answer)"
    caption = "Above a question its gold document, below it (→) the first accepted answer."
    return image_grid(rows, title=title, caption=caption)


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
