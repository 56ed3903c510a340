"""Figures of example questions, as in the paper's Figure 3, and of option extraction."""

from __future__ import annotations

from string import ascii_uppercase
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from PIL import ImageOps

from vrag_kit.papers.mrag_bench.choices import ANOTHER, AS_LABELLED, ASKS, CRASH, RIGHT, WRONG
from vrag_kit.plotting import outcome_bars
from vrag_kit.plotting.style import (
    DARK,
    EVIDENCE,
    MODEL,
    OUTCOME,
    SMALL,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.types import Benchmark, LazyImage

_WIDE, _LINE = 2.1, 0.17
"""The width of a card in inches, and the height of a line, of an image's side."""
_SETTINGS = {"no_rag": "no examples", "gt_rag": "gold", "retrieved_rag": "retrieved"}
_FRAMES = {"gold": "gold image", "other": "left: question image; right: top retrieved image"}


def examples_figure(benchmark: Benchmark, scores: pd.DataFrame, title: str) -> Figure:
    """Plots a card for each row of `scores`, three in a row: the question's image, a gold one and
    the first that was retrieved (green frame: gold); below each image whether the model is correct
    without examples, with gold or with retrieved ones; then the question and its options, the
    correct one bold. Columns: query_id, model, and the score in the setting no_rag, gt_rag and
    retrieved_rag.
    """
    figure, axes = new_figure(-(-len(scores) // 3), 3, height=0.7 * len(scores) + 0.35)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, row in zip(axes.flat, scores.to_dict("records"), strict=False):
        query, gold = benchmark.queries[row["query_id"]], benchmark.relevant(row["query_id"])
        found = tuple(query.metadata.get("retrieved", ()))[:1]
        tiles = [(query.image, "other")]
        for doc_id in (*gold[:1], *found):
            tiles.append((benchmark.corpus[doc_id].image, "gold" if doc_id in gold else "other"))
        for place, ((image, kind), setting) in enumerate(zip(tiles, _SETTINGS, strict=False)):
            _image(axis, place, image, kind)
            _outcome(axis, place, _SETTINGS[setting], float(row[setting]))
        lines = [(line, "normal") for line in fit(query.text, _WIDE).splitlines()]
        for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
            weight = "bold" if choice in query.answers else "normal"
            lines.append((shorten(f"({letter}) {choice}", 40, placeholder=" …"), weight))
        for place, (line, weight) in enumerate(lines):
            axis.text(0, 1.35 + _LINE * place, line, fontsize=SMALL, weight=weight, color=DARK)
        axis.text(0, -0.08, query.metadata["scenario"], fontsize=8, weight="bold", color=DARK)
        axis.set(xlim=(0, 3), ylim=(1.3 + 6 * _LINE, -0.25))
    caption = (
        f"{benchmark.name}: a question of each scenario, answered by"
        f" {', '.join(scores['model'].unique())} without examples, with gold and with retrieved"
        " ones. Each was selected for the outcome of the title where its scenario has one: the"
        " questions are no random sample. ✓: correct; bold: the correct option. The percentage"
        " weights scenarios by the paper's proportions."
    )
    handles = [Patch(fill=False, color=EVIDENCE[kind], label=_FRAMES[kind]) for kind in _FRAMES]
    set_caption(figure, title, caption, handles)
    return figure


def _image(axis: Axes, place: int, image: LazyImage | None, kind: str) -> None:
    if image is not None:
        square = ImageOps.pad(image.open(), (150, 150), color="white")
        axis.imshow(np.asarray(square), extent=(place + 0.03, place + 0.97, 0.97, 0.03))
    frame = Rectangle((place + 0.03, 0.03), 0.94, 0.94, fill=False, color=EVIDENCE[kind])
    frame.set_linewidth(2 if kind == "gold" else 0.6)
    axis.add_patch(frame)


def _outcome(axis: Axes, place: int, name: str, score: float) -> None:
    mark, outcome = ("✓", "correct") if score > 0 else ("✗", "incorrect")
    if pd.isna(score):
        mark, outcome = "–", "missing"
    text = axis.text(place + 0.5, 1.14, f"{mark} {name}", fontsize=SMALL, ha="center")
    text.set(color=OUTCOME[outcome], weight="bold")


_CLASSES = {RIGHT: "correct", AS_LABELLED: "correct", WRONG: "incorrect", ANOTHER: "incorrect"}
_CLASSES |= {ASKS: "asks", CRASH: "crash"}
_NAMES = {"missing": "no option found", "asks": "falls back to GPT-3.5", "crash": "crashes"}
_COLORS = {**OUTCOME, "asks": MODEL[4], "crash": DARK}


def extraction_shares(read: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns the shares, in percent, of what each extraction finds in answers: `by`, extraction
    ("official", "ours"), n, metric ("correct", "incorrect", "missing" where it finds no option,
    "asks", "crash"), value. All of them are given for each extraction, 0 where there is none.

    `read` comes from `evaluate_extractors` (then "correct" is as labelled), or from
    `with_official_score`, whose failed calls are left out.
    """
    long = read.melt(by, ["official_is", "ours_is"], "extraction", "metric").dropna()
    long["metric"] = long["metric"].map(_CLASSES).fillna("missing")
    long["extraction"] = long["extraction"].str.removesuffix("_is")
    counts = long.groupby([by, "extraction", "metric"]).size().unstack("metric", fill_value=0)
    counts = counts.reindex(columns=["correct", "incorrect", *_NAMES], fill_value=0)
    n = counts.sum(axis=1)
    shares = counts.mul(100).div(n, axis=0).assign(n=n).reset_index()
    return shares.melt([by, "extraction", "n"], var_name="metric")


def extraction_figure(
    shares: pd.DataFrame, right: str, wrong: str, title: str, caption: str = ""
) -> Figure:
    """Draws `extraction_shares`, of which `right` and `wrong` name the first two outcomes;
    `caption` precedes what the rows are.
    """
    names = {"correct": right, "incorrect": wrong, **_NAMES}
    return outcome_bars(
        shares,
        rows=[shares.columns[0], "extraction"],
        outcomes=names,
        colors=_COLORS,
        names={"ours": "our parser", "official": "released scorer"},
        title=title,
        caption=f"{caption} Both read the same answers; the shares of a row sum to 100 %. The"
        " released scorer calls GPT-3.5 where its rules fail, and may crash, which ends its run.",
    )
