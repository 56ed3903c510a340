"""Figure of one example question per scenario, as in the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from PIL import ImageOps

from vrag_kit.papers.mrag_bench.turned import SETTINGS, scores_by_setting
from vrag_kit.plotting.style import DARK, EVIDENCE, OUTCOME, SMALL, fit, new_figure, set_caption
from vrag_kit.types import Benchmark, LazyImage

_WIDE, _LINE = 2.1, 0.17
"""The width of a card in inches, and the height of a line, of an image's side."""
_FRAMES = {"gold": "gold image", "other": "left: the question's; right: retrieved first"}


def examples_figure(
    benchmark: Benchmark, judged: pd.DataFrame, query_ids: Sequence[str], model: str, title: str
) -> Figure:
    """Plots a card for each question, three in a row: its image, a gold one and the first that was
    retrieved (green frame: gold); below each image whether the model is correct without examples,
    with gold or with retrieved ones; then the question and its options, the correct one bold.
    """
    scores = scores_by_setting(judged[judged["model"] == model]).set_index("query_id")
    figure, axes = new_figure(-(-len(query_ids) // 3), 3, height=0.7 * len(query_ids) + 0.35)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, query_id in zip(axes.flat, query_ids, strict=False):
        query, gold = benchmark.queries[query_id], benchmark.relevant(query_id)
        found = tuple(query.metadata.get("retrieved", ()))[:1]
        tiles = [(query.image, False)]
        tiles += [(benchmark.corpus[each].image, each in gold) for each in (*gold[:1], *found)]
        outcomes = scores.loc[query_id, list(SETTINGS)].to_numpy(float)
        for place, (image, is_gold) in enumerate(tiles):
            _image(axis, place, image, "gold" if is_gold else "other")
            _outcome(axis, place, float(outcomes[place]))
        lines = [(line, "normal") for line in fit(query.text, _WIDE).splitlines()]
        for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
            weight = "bold" if choice in query.answers else "normal"
            lines.append((shorten(f"({letter}) {choice}", 40, placeholder=" …"), weight))
        for place, (line, weight) in enumerate(lines):
            axis.text(0, 1.35 + _LINE * place, line, fontsize=SMALL, weight=weight, color=DARK)
        axis.text(0, -0.08, query.metadata["scenario"], fontsize=8, weight="bold", color=DARK)
        axis.set(xlim=(0, 3), ylim=(1.3 + 6 * _LINE, -0.25))
    caption = (
        f"{benchmark.name}: a question of each scenario, answered by {model} without examples,"
        " with gold and with retrieved ones. Bold: the correct option."
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


def _outcome(axis: Axes, place: int, score: float) -> None:
    mark, outcome = ("✓", "correct") if score > 0 else ("✗", "incorrect")
    if pd.isna(score):
        mark, outcome = "–", "missing"
    name = list(SETTINGS.values())[place]
    text = axis.text(place + 0.5, 1.14, f"{mark} {name}", fontsize=SMALL, ha="center")
    text.set(color=OUTCOME[outcome], weight="bold")
