"""Figures that only this paper needs: data sets in numbers, one checked answer, and published rows
against RAGChecker's definitions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.report_tables import TINY
from vrag_kit.claims.checking import reference_answers
from vrag_kit.claims.verdicts import UNPARSED
from vrag_kit.papers.mrag_suite.modes import ARMS, mode_names
from vrag_kit.plotting.diagnostics import confusion_plot
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.panels import NO_NAMES, Names, Series, draw_interval, forest_plot
from vrag_kit.plotting.style import (
    GREY,
    LIGHT,
    MODEL,
    OUTCOME,
    REPORTED,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.types import Benchmark


def count_beyond(differences: pd.DataFrame) -> str:
    """Counts the 95 % intervals on either side of 0, for titles: "3 of 9 above 0, 1 below"."""
    above, below = (differences["ci_low"] > 0).sum(), (differences["ci_high"] < 0).sum()
    return f"{above} of {len(differences)} intervals above 0, {below} below"


def strata_with_n(table: pd.DataFrame) -> dict[str, str]:
    """Names strata with their n in each data set, for legends: "all questions (n = 80 in WebQA, 60
    in Visual-RAG)". `table` has one n for each stratum and data set.
    """
    names = {}
    for stratum, part in table.groupby("stratum", sort=False):
        sizes = part.groupby("dataset", sort=False)["n"].max()
        counts = ", ".join(f"{n} in {dataset}" for dataset, n in sizes.items())
        if len(sizes) > 1 and sizes.nunique() == 1:
            counts = f"{sizes.iloc[0]} in each data set"
        names[str(stratum)] = f"{stratum} (n = {counts})"
    return names


def own_metric_plot(
    table: pd.DataFrame,
    *,
    names: Names = NO_NAMES,
    **look: Any,  # options of `forest_plot`
) -> Figure:
    """Draws means or differences of the data sets' own metrics by `forest_plot`, with `names` and
    those of settings and metrics.
    """
    is_difference = "baseline" in table
    label = "Difference in the data set's own metric (percentage points)"
    xlabel = label if is_difference else "Score in the data set's own metric (%)"
    limits = (None, None) if is_difference else (-3, 103)
    every = {**names, **mode_names(table)}
    return forest_plot(table, names=every, xlabel=xlabel, limits=limits, **look)


_PANELS = {
    "n_full": "Questions\n(log scale)",
    "avg_image_width_px": "Mean image width\n(pixels)",
    "avg_question_length": "Mean length of\na question (words)",
    "avg_answer_length": "Mean length of\nan answer (words)",
}


def _key(label: str, color: str, marker: str = "o") -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], color=color, marker=marker, linestyle="", label=label)


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
    sizes = statistics.loc[statistics["metric"] == "n_full", "value"]
    title = f"A data set holds {sizes.min():,.0f} to {sizes.max():,.0f} questions"
    caption = "Widths are means over gold images, lengths over questions."
    handles = [_key("these data sets", MODEL[0])]
    handles.append(_key("reported (Table 1, the paper's data)", REPORTED, "D"))
    handles[-1].set_fillstyle("none")
    set_caption(figure, title, caption, handles)
    return figure


_VERDICTS = {1.0: "entails", 0.0: "neutral", -1.0: "contradicts"}
_FRAMES = {"entails": OUTCOME["correct"], "contradicts": OUTCOME["incorrect"]}


def checked_answer(benchmark: Benchmark, answer: pd.Series) -> tuple[Figure, pd.DataFrame]:
    """Draws the checker's verdicts on one answer, a row of checked answers: its claims down, the
    reference answer and the documents across. A true label that differs is below the verdict.
    Returns the figure and the verdicts: claim, doc_id, verdict, true_label (the verdict where no
    truth is known), dataset, query_id, model, setting.
    """
    sheet = answer["sheet"]
    query = benchmark.queries[sheet.query_id]
    reference = " | ".join(reference_answers(query))
    documents = [item.doc_id for item in sheet.items]
    cells = product(sheet.claims, ["accepted answers", *documents])
    table = pd.DataFrame(cells, columns=["claim", "doc_id"])
    for name, of in (("verdict", sheet), ("true_label", answer["true_sheet"] or sheet)):
        scores = of.verdicts[: len(sheet.claims)].ravel()
        table[name] = [_VERDICTS.get(score, "unparsed") for score in scores.tolist()]
    heads = [Tile(None), Tile(None, "", "reference answer")]
    for doc_id in documents:
        tile = document_tile(benchmark, sheet.query_id, doc_id, "document")
        heads.append(replace(tile, below="a text" * (tile.image is None)))
    rows = {"": heads}
    for claim, verdicts in table.groupby("claim", sort=False):
        tiles = [_verdict_tile(cell) for cell in verdicts.to_dict("records")]
        rows[f"claim {len(rows)}"] = [Tile(None, "", str(claim)), *tiles]
    right = (table["verdict"] == table["true_label"]).sum()
    title = f"the checker is right in {right} of {len(table)} verdicts on one answer"
    caption = f"""{answer["dataset"]}, model {answer["model"]}. Question: “{query.text}” Answer:
    “{answer["answer"]}” Reference answer: “{reference}” Frames: the checker's verdict, blue if the
    reference answer or the document entails the claim, red if it contradicts it; in brackets the
    true label of a wrong verdict. The true label follows from the species
    shown; a document about another species is neutral."""
    figure = image_grid(rows, height=1.2, title=title, caption=caption)
    return figure, table.assign(**answer[["dataset", "query_id", "model", "setting"]])


def _verdict_tile(cell: Mapping[Hashable, Any]) -> Tile:  # a row of a table: any values
    wrong = cell["verdict"] != cell["true_label"]
    words = cell["verdict"] + f"\n(true: {cell['true_label']})" * wrong
    return Tile(None, "", words, _FRAMES.get(cell["verdict"], LIGHT))


_DRAWN = {
    "faithfulness": "faithfulness: claims that a document entails",
    "hallucination (RAGChecker)": (
        "hallucination (RAGChecker): incorrect, and no document entails it"
    ),
    "evidence utilization": "evidence utilization: documents that entail a claim",
}
"""The drawn metrics, of `CLAIM_METRICS`."""
_SOURCES = {
    "true": "true labels",
    "corrected": "the checker's labels, corrected by a sample",
    "checker": "the checker's labels",
    "image": "images alone",
    "text": "texts alone",
}


def claim_plot(table: pd.DataFrame, **look: Any) -> Figure:  # options of `forest_plot`
    """Draws means of claim metrics (a panel each) or their differences from a mode, in percent, by
    `forest_plot`. The name in `CLAIM_METRICS` is in the column measure, of differences in metric;
    three are drawn, and means only where they have an interval.
    """
    is_difference = "baseline" in table
    measure = table["metric" if is_difference else "measure"]
    drawn = table.assign(measure=measure)[measure.isin(_DRAWN)].dropna(subset=["value", "ci_low"])
    names = _DRAWN | ARMS | _SOURCES
    if is_difference:
        drawn = drawn.assign(n_failed=0)  # questions without a claim in one mode
        return forest_plot(drawn, color="measure", panels="setting", names=names, **look)
    note = "n ≥: shares of claims leave out answers without claims."
    if "by_construction" in drawn and drawn["by_construction"].any():
        note += " A true mean whose interval has no width, as 0 with distractors only, holds by"
        note += " construction: distractors do not state what is asked."
    look |= {"panels": "measure", "names": names}
    look["caption"] = f"{look.get('caption', '')} {note}".strip()
    return forest_plot(drawn, xlabel="Mean (%)", limits=(-3, 103), **look)


def count_contained(means: pd.DataFrame, source: str) -> str:
    """Counts for each source of labels the drawn intervals that contain the mean by the labels of
    `source`, for titles: "checker 13 of 24, corrected 24 of 24". `means` is as in `claim_plot`,
    with the column label_source.
    """
    keys = ["dataset", "model", "setting", "measure"]
    known = means[means["measure"].isin(_DRAWN)].dropna(subset="ci_low")
    both = known.merge(known.loc[known["label_source"] == source, [*keys, "value"]], on=keys)
    inside = both["value_y"].between(both["ci_low"] - TINY, both["ci_high"] + TINY)
    counts = inside.groupby(both["label_source"]).agg(["sum", "size"]).drop(source, errors="ignore")
    return ", ".join(f"{name} {held} of {n}" for name, held, n in counts.itertuples())


_SHORT = {"ENTAILMENT": "entails", "NEUTRAL": "neutral", "CONTRADICTION": "contra-\ndicts"}


def checker_plot(counts: pd.DataFrame) -> Figure:
    """Draws `confusion_counts` about images, a matrix for each mode. "Unparsed" is left out where
    all verdicts are parsed.
    """
    images = counts[counts["evidence_kind"] == "image"]
    right = images.loc[images["true_label"] == images["checker_label"], "n"].sum()
    drawn = images[(images["checker_label"] != UNPARSED) | (images["n"] > 0)].replace(_SHORT)
    matrices = {
        ARMS[str(mode)]: part.pivot_table("n", "true_label", "checker_label", "sum", 0, sort=False)
        for mode, part in drawn.groupby("setting", sort=False)
    }
    look = {"truth": "True label", "predicted": "Checker's verdict", "unit": "verdicts"}
    title = f"the checker is right in {right:,} of {images['n'].sum():,} verdicts about images"
    return confusion_plot(matrices, **look, title=title, caption="Right: on the diagonal.")


_METRICS = {"H": "hallucination", "F": "faithfulness", "SK": "self-knowledge", "P": "precision"}


def inequality_figure(rows: pd.DataFrame) -> Figure:
    """Draws one dot for each published row and inequality, by table: right of the line the row
    violates RAGChecker's definitions. `rows` comes from `inequalities`.
    """
    import seaborn as sns

    broken = ~rows.groupby(["table", "cell"], sort=False)["holds"].all()
    every = broken.groupby("table", sort=False).agg(["sum", "size"])
    counts = {table: f"{n} of {count}" for table, n, count in every.itertuples()}
    panels = rows.groupby("inequality", sort=False)
    figure, axes = new_figure(1, len(panels), height=3.1, sharey=True, sharex=True)
    look: dict[str, Any] = {"palette": {True: GREY, False: OUTCOME["incorrect"]}, "orient": "h"}
    look |= {"jitter": 0.3, "size": 3, "order": list(counts), "legend": False}
    for axis, (name, part) in zip(axes[0], panels, strict=True):
        sns.stripplot(part, x="excess", y="table", hue="holds", ax=axis, **look)
        words = " ".join(_METRICS.get(word, word) for word in str(name).split())
        count = f"{(~part['holds']).sum()} of {len(part)} rows violate"
        axis.set_title(fit(f"{words.replace('at most', '≤')}\n{count}", 1.55, 8))
        axis.axvline(0, color="black", linewidth=0.8)
        axis.grid(axis="y", visible=False)
        axis.set(xlabel="", ylabel="")
    figure.supxlabel("Points above what the definitions allow", fontsize=8)
    labels = [f"Table {table}\n{count} rows\nviolate" for table, count in counts.items()]
    axes[0][0].set_yticks(range(len(labels)), labels)
    tables = ", ".join(f"{count} rows of Table {table}" for table, count in counts.items())
    caption = "A dot is a row. At the left: the rows that violate any definition."
    title = f"RAGChecker's definitions are violated by {tables} of the MRAG-Suite paper"
    handles = [_key("a row that obeys the definition", GREY, ".")]
    handles.append(_key("a row that violates it", OUTCOME["incorrect"], "."))
    set_caption(figure, title, caption, handles)
    return figure
