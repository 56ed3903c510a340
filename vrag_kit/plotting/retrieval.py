"""Figures of retrieval: quality over cutoffs, and the images retrieved for one question."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vrag_kit.plotting.old_panels import dodge, wrap_title
from vrag_kit.plotting.old_style import (
    DARK,
    GREY,
    METRIC_NAMES,
    REFERENCES,
    model_colors,
    new_figure,
)
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, LazyImage

ASKED = "asked about"
"""The title of a question's own image."""
_LINE = ["value", "ci_low", "ci_high", "n"]
_PANELS = ("recall", "hit", "hit_count", "ndcg", "ndcg_visual_rag")
_WIDE = 3.5  # inches of an x axis of `retriever_figure`, about
_DIGIT = 0.1  # and of a digit below it
_APART = 1.05  # from one retriever to the next, times k


def retriever_figure(
    results: pd.DataFrame, paper: pd.DataFrame, benchmark: Benchmark, *, same_data: bool = False
) -> Figure:
    """Draws curves over k for five metrics, then for any other of `results`, with 95 % intervals as
    bars. All shares have one y axis; a paper's retrievers are dotted lines, marked as on other data
    unless `same_data`. Where n differs, as by a metric without a value for some query, the title
    gives the range, and each panel its own.

    `results` has the columns retriever, metric, k, value, ci_low, ci_high and n, shares
    in percent; `paper` likewise.
    """
    require_columns(results, ["retriever", "metric", "k", *_LINE], "retriever_figure")
    others = [metric for metric in results["metric"].unique() if metric not in _PANELS]
    panels = [*_PANELS, *others]
    columns = len(panels) // 2 + 1  # with a place for the legend
    figure, axes = new_figure(2, columns, (13 / 3 * columns, 8.0))
    colors = model_colors([*paper["retriever"], *results["retriever"]])
    mark = " (reported)" if same_data else " (reported, other data)"
    both = pd.concat([results.assign(mark=""), paper.assign(mark=mark)], ignore_index=True)
    cutoffs = sorted(both["k"].unique())
    fewest, most = results["n"].min(), results["n"].max()
    for axis, metric in zip(axes.flat, panels, strict=False):
        axis.set_xscale("log")
        _metric(axis, both[both["metric"] == metric], colors)
        axis.set(xlim=(cutoffs[0] / 1.25, 1.25 * cutoffs[-1]), xticks=cutoffs)
        axis.set_xticklabels(_ticks(cutoffs))
        axis.xaxis.set_minor_locator(NullLocator())
        count = metric == "hit_count"
        shown = results[results["metric"] == metric]
        title = METRIC_NAMES.get(metric, metric)
        if not shown.empty and fewest < most:
            whole = f"{title}, n = {_span(shown)}"
            fits = wrap_title(whole, _WIDE) == whole
            title = whole if fits else f"{wrap_title(title, _WIDE)},\nn = {_span(shown)}"
        axis.set(title=title)
        axis.set(xlabel="images retrieved, k")
        axis.set(ylabel="clue images retrieved" if count else "share (%)")
        axis.set_ylim(bottom=0, top=None if count else 103)
    handles, labels = axes[0][0].get_legend_handles_labels()
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    axes.flat[len(panels)].legend(handles, labels, loc="center", fontsize=10)
    figure.suptitle(
        f"{benchmark.name}: mean over n = {_span(results)} queries, bars are 95 %"
        f" intervals over {benchmark.groups_are}",
        fontsize=11,
    )
    figure.supxlabel("Reported: binomial intervals from the reported mean", fontsize=9)
    return figure


def _ticks(cutoffs: list[int]) -> list[str]:
    """What stands below the cut-offs; one that would touch that before it stands lower."""
    width = math.log(1.25**2 * cutoffs[-1] / cutoffs[0]) / _WIDE
    labels = [str(cutoffs[0])]
    for before, k in pairwise(cutoffs):
        between = math.log(k / before) / width
        touch = between < _DIGIT * (len(str(k)) + len(str(before)) + 1) / 2
        labels.append(f"\n{k}" if touch and not labels[-1].startswith("\n") else str(k))
    return labels


def _span(results: pd.DataFrame) -> str:
    """The least and the largest n of some rows, or the one that all have."""
    fewest, most = int(results["n"].min()), int(results["n"].max())
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def _metric(axis: Axes, table: pd.DataFrame, colors: Mapping[str, str]) -> None:
    """All retrievers in one metric, a little apart; reference orders dashed, without
    intervals.
    """
    lines = list(table.sort_values("k").groupby(["mark", "retriever"], sort=False))
    measured = [name for name, _ in lines if name[1] not in REFERENCES]
    shifts = dict(zip(measured, dodge(len(measured), 1.0), strict=True))
    for (mark, name), line in lines:
        color, label = colors[str(name)], f"{name}{mark}"
        if name in REFERENCES:
            style = "--" if len(line) > 1 else "_"  # a line of one point shows nothing
            (drawn,) = axis.plot(line["k"], line["value"], style, color=color, label=label)
            drawn.set(linewidth=1.4, markersize=16)
            continue
        x = line["k"] * _APART ** shifts[mark, name]
        (points,) = axis.plot(x, line["value"], "o-", color=color, label=label)
        bars = axis.vlines(x, line["ci_low"], line["ci_high"], color=color, linewidth=1.4)
        if mark:
            points.set(linestyle=":", markersize=3)
            bars.set_linewidth(0.8)


def draw_document_image(
    axis: Axes, benchmark: Benchmark, doc_id: str, title: str, frame: str
) -> None:
    """Draws one document's image with a coloured frame."""
    draw_image(axis, benchmark.corpus[doc_id].image, title, frame)


def draw_image(axis: Axes, image: LazyImage | None, title: str, frame: str) -> None:
    """Draws an image with a coloured frame; only the frame for None."""
    if image is not None:
        picture = image.open()
        picture.thumbnail((256, 256))
        axis.imshow(np.asarray(picture))
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=8, color=frame if frame != GREY else DARK)
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=frame, linewidth=3 if frame != GREY else 0.8)
