"""Figures about retrieval: quality over cut-offs, and what was found for one question."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vrag_kit.plotting.style import CLUE, GREY, METRIC_NAMES, colors_of, new_figure
from vrag_kit.types import Benchmark, LazyImage

ASKED = "asked about"
"""The title of a question's own picture."""
_PANELS = ("recall", "ndcg_visual_rag", "hit", "hit_count")


def retriever_figure(results: pd.DataFrame, paper: pd.DataFrame, name: str) -> Figure:
    """Table 2 as curves over k, with 95 % bands; the paper's retrievers, on the paper's
    data, as faint dotted lines.

    `results` has the columns retriever, metric, k, value, ci_low, ci_high and n, shares
    in percent; `paper` is `published("visual_rag", table=2)`.
    """
    figure, (axes,) = new_figure(1, 4, (14, 4.4))
    colors = colors_of([*paper["retriever"], *results["retriever"]])
    for axis, metric in zip(axes, _PANELS, strict=True):
        printed = paper[paper["metric"] == {"ndcg_visual_rag": "ndcg"}.get(metric, metric)]
        for retriever, line in printed.groupby("retriever", sort=False):
            axis.plot(
                line["k"],
                line["value"],
                ":",
                color=colors[str(retriever)],
                linewidth=1.2,
                alpha=0.8,
                label=f"{retriever} (paper, other data)",
            )
        for retriever, line in results[results["metric"] == metric].groupby(
            "retriever", sort=False
        ):
            reference = str(retriever).endswith("order")
            axis.plot(
                line["k"],
                line["value"],
                "--" if reference else "o-",
                color=colors[str(retriever)],
                linewidth=1.4 if reference else 2.2,
                markersize=5,
                label=retriever,
            )
            if not reference:
                axis.fill_between(
                    line["k"],
                    line["ci_low"],
                    line["ci_high"],
                    color=colors[str(retriever)],
                    alpha=0.15,
                    linewidth=0,
                )
        axis.set(
            title=METRIC_NAMES[metric],
            xscale="log",
            xticks=sorted(results["k"].unique()),
            xlabel="images retrieved, k",
            ylabel=(
                "clue images found"
                if metric == "hit_count"
                else f"{METRIC_NAMES[metric].split(' (')[0]} (%)"
            ),
        )
        axis.set_xticklabels(sorted(results["k"].unique()))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_ylim(bottom=0, top=None if metric == "hit_count" else 103)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(
        f"{name}: mean over n = {int(results['n'].max())} queries, bands are 95 % intervals over"
        " species",
        fontsize=11,
    )
    return figure


def retrieved_figure(
    benchmark: Benchmark, query_id: str, runs: dict[str, pd.DataFrame], k: int = 6
) -> Figure:
    """The first k images that each retriever found for one question; clues have a green
    frame. A question about a picture shows it, in a column before them.
    """
    clues = set(benchmark.relevant(query_id))
    asked = benchmark.queries[query_id].image
    columns = k if asked is None else k + 1
    figure, axes = new_figure(len(runs), columns, (1.45 * columns, 1.75 * len(runs) + 0.9))
    if asked is not None:
        show_picture(axes[0, 0], asked, ASKED, GREY)
        for axis in axes[1:, 0]:
            axis.set_axis_off()
    for row, (name, run) in zip(axes[:, columns - k :], runs.items(), strict=True):
        found = run[(run["query_id"] == query_id) & (run["rank"] <= k)]
        for axis, (doc_id, rank) in zip(
            row, found[["doc_id", "rank"]].itertuples(index=False), strict=False
        ):
            picture_on(
                axis,
                benchmark,
                doc_id,
                f"rank {rank}" + (" · clue" if doc_id in clues else ""),
                CLUE if doc_id in clues else GREY,
            )
        for axis in row[len(found) :]:
            axis.set(xticks=[], yticks=[], frame_on=False)
        row[0].set_ylabel(textwrap.fill(name, 16), fontsize=9)
    query = benchmark.queries[query_id]
    figure.suptitle(
        textwrap.fill(query.text, 110)
        + f"\naccepted: {', '.join(query.answers[:3])}; {len(clues)} clues among"
        f" {len(benchmark.qrels[query_id])} images",
        fontsize=10,
    )
    return figure


def picture_on(axis: Axes, benchmark: Benchmark, doc_id: str, title: str, frame: str) -> None:
    """Draw one document's image with a coloured frame."""
    show_picture(axis, benchmark.corpus[doc_id].image, title, frame)


def show_picture(axis: Axes, image: LazyImage | None, title: str, frame: str) -> None:
    """Draw a picture with a coloured frame; the frame alone for None."""
    if image is not None:
        picture = image.open()
        picture.thumbnail((256, 256))
        axis.imshow(np.asarray(picture))
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=8, color=frame if frame != GREY else "#3B3B3B")
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=frame, linewidth=3 if frame != GREY else 0.8)


def contact_sheet(benchmark: Benchmark, query_id: str, clues: int = 4, others: int = 8) -> Figure:
    """Some clues and some other candidates of one question, in the order of the
    annotations; before them the picture that it is asked about, if there is one.
    """
    labels = benchmark.qrels[query_id]
    chosen = [d for d, label in labels.items() if label][:clues] + [
        d for d, label in labels.items() if not label
    ][:others]
    asked = benchmark.queries[query_id].image
    first = 0 if asked is None else 1
    columns = 6
    rows = -(-(first + len(chosen)) // columns)
    figure, axes = new_figure(rows, columns, (1.6 * columns, 1.9 * rows + 0.7))
    for axis in axes.flat[first + len(chosen) :]:
        axis.set_axis_off()
    if asked is not None:
        show_picture(axes.flat[0], asked, ASKED, GREY)
    for axis, doc_id in zip(axes.flat[first:], chosen, strict=False):
        picture_on(
            axis,
            benchmark,
            doc_id,
            "clue" if labels[doc_id] else "not a clue",
            CLUE if labels[doc_id] else GREY,
        )
    figure.suptitle(textwrap.fill(benchmark.queries[query_id].text, 95), fontsize=10)
    return figure
