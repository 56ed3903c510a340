"""Figure that compares our option parser with the official scorer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_bench.labelled_choices import ANOTHER, AS_LABELLED, NO_LETTER
from vrag_kit.papers.mrag_bench.official_scorer import ScorerOutcome
from vrag_kit.papers.mrag_bench.readers import READINGS, RIGHT, WRONG
from vrag_kit.plotting.old_panels import Mark, dodge, draw_means
from vrag_kit.plotting.old_style import DARK, PALETTE, model_colors, new_figure

_PALE, _PALER = "#B8B8B8", "#DDDDDD"
_OUTCOMES = {  # what became of an answer → its colour
    AS_LABELLED: PALETTE[0],
    RIGHT: PALETTE[0],
    ANOTHER: PALETTE[1],
    WRONG: PALETTE[4],
    NO_LETTER: PALETTE[8],
    "ambiguous": PALETTE[6],
    "declined": PALETTE[5],
    "unparsed": _PALE,
    "empty": _PALER,
    str(ScorerOutcome.WRONG): _PALER,
    str(ScorerOutcome.ASKS): PALETTE[3],
    str(ScorerOutcome.CRASH): DARK,
}
_LIGHT = (_PALE, _PALER, PALETTE[4], PALETTE[5])
_ROOM = 6  # percent of a bar that hold a number
_READERS = {"official_is": "official", "ours_is": "ours"}


def extraction_figure(
    labelled: pd.DataFrame, read: pd.DataFrame, accuracy: pd.DataFrame, name: str
) -> Figure:
    """Plots outcomes of both extractors and accuracy under each. Left: on labelled answers
    (`evaluate_extractors`). Middle: on each model's answers (`with_official_score`). Right:
    accuracy (`accuracy_by_extractor`), with 95 % intervals. Without answers the last two say so.
    """
    models = list(read["model"].unique())
    height = 2.6 + 0.62 * max(3, len(models))
    figure, (axes,) = new_figure(1, 3, (16.5, height), width_ratios=(1, 1.2, 1))
    _bars(axes[0], _parts(labelled, "source"), "Labelled answers")
    _bars(axes[1], _parts(read.dropna(subset="rule"), "model"), f"Answers to {name}")
    _accuracy(axes[2], accuracy)
    figure.supxlabel("Numbers: answers. Right: 95 % intervals.", fontsize=9)
    return figure


def _parts(table: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    return {str(name): part for name, part in table.groupby(column, sort=False)}


def _nothing(axis: Axes, title: str) -> None:
    axis.axis("off")
    axis.set(title=title)
    axis.text(0.5, 0.5, "no answers", ha="center", va="center", transform=axis.transAxes)


def _bars(axis: Axes, parts: Mapping[str, pd.DataFrame], title: str) -> None:
    """Shares of outcomes, one bar a part and reader."""
    if not parts:
        return _nothing(axis, title)
    bars = {}
    for (name, part), (column, reader) in product(parts.items(), _READERS.items()):
        told = f"{name.replace('field-guide-', '')} (n = {len(part)})\n{reader}"
        bars[told] = part[column].value_counts()
    for y, counts in enumerate(bars.values()):
        _bar(axis, y, counts)
    seen = set().union(*(counts.index for counts in bars.values()))
    for outcome, color in _OUTCOMES.items():
        if outcome in seen:
            axis.barh(0, 0, color=color, label=outcome)
    axis.set_yticks(range(len(bars)), list(bars), fontsize=9)
    axis.invert_yaxis()
    axis.set(title=title, xlabel="share of answers (%)", xlim=(0, 100))
    axis.grid(visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.4, -0.16), ncols=2, fontsize=8.5)


def _bar(axis: Axes, y: int, counts: pd.Series) -> None:
    """One bar, in the order of the outcomes, with counts where there is room."""
    start, total = 0.0, int(counts.sum())
    for outcome, color in _OUTCOMES.items():
        count = int(counts.get(outcome, 0))
        share = 100 * count / total
        axis.barh(y, share, 0.7, start, color=color)
        if share >= _ROOM:
            ink = DARK if color in _LIGHT else "white"
            middle = start + share / 2
            axis.text(middle, y, str(count), ha="center", va="center", fontsize=9, color=ink)
        start += share


def _accuracy(axis: Axes, accuracy: pd.DataFrame) -> None:
    """The readings side by side, models beside one another."""
    if accuracy.empty:
        return _nothing(axis, "Accuracy by extraction method")
    colors = model_colors(accuracy["model"])
    readings = [reading for reading in READINGS.values() if reading in set(accuracy["extraction"])]
    for shift, (model, color) in zip(dodge(len(colors), 0.16), colors.items(), strict=True):
        rows = accuracy[accuracy["model"] == model].set_index("extraction").reindex(readings)
        x = np.arange(len(readings)) + shift
        draw_means(axis, x, rows, Mark(color))
        axis.plot([], [], "o", color=color, label=f"{model} (n = {rows['n'].max():.0f})")
    words = [reading.replace(", ", ",\n").replace(" as ", "\nas ") for reading in readings]
    axis.set_xticks(range(len(words)), words, fontsize=9)
    axis.set_xlim(-0.6, len(words) - 0.4)
    axis.set(title="Accuracy by extraction method", ylabel="accuracy (%)", ylim=(0, 103))
    axis.grid(axis="x", visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), fontsize=8.5)
