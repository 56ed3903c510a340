"""Figures that only this paper needs: scores by each data set's own metric, one checked answer,
claim metrics, and published rows against RAGChecker's definitions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import TINY
from vrag_kit.claims.checking import reference_answers
from vrag_kit.claims.verdicts import UNPARSED
from vrag_kit.papers.mrag_suite.modes import ARMS, mode_names
from vrag_kit.plotting.diagnostics import confusion_plot
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import LIGHT, OUTCOME
from vrag_kit.types import Benchmark


def count_beyond(differences: pd.DataFrame) -> str:
    """Counts the 95 % intervals on either side of 0, for titles: "3 of 9 above 0, 1 below"."""
    above, below = (differences["ci_low"] > 0).sum(), (differences["ci_high"] < 0).sum()
    return f"{above} of {len(differences)} intervals above 0, {below} below"


def own_metric_plot(table: pd.DataFrame, **look: Any) -> Figure:  # options of `forest_plot`
    """Draws means or differences of the data sets' own metrics by `forest_plot`, with the names of
    settings and metrics.
    """
    is_difference = "baseline" in table
    label = "Difference in the data set's own metric (percentage points)"
    xlabel = label if is_difference else "Score in the data set's own metric (%)"
    limits = (None, None) if is_difference else (-3, 103)
    return forest_plot(table, names=mode_names(table), xlabel=xlabel, limits=limits, **look)


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
    tiles = [document_tile(benchmark, sheet.query_id, each, "document") for each in documents]
    tiles = [replace(tile, below="a text" * (tile.image is None)) for tile in tiles]
    rows = {"": [Tile(None), Tile(None, "", "reference answer"), *tiles]}
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


def inequality_figure(rows: pd.DataFrame) -> Figure:
    """Draws the share of published rows that violate each of RAGChecker's definitions, a panel for
    each table. `rows` comes from `inequalities`.
    """
    violates = ~rows.groupby(["table", "cell"], sort=False)["holds"].all()
    counts = violates.groupby("table", sort=False).agg(["sum", "size"])
    tables = [f"{n} of {count} rows of Table {table}" for table, n, count in counts.itertuples()]
    shares = rows.assign(value=100.0 * ~rows["holds"]).groupby(["table", "inequality"], sort=False)
    return forest_plot(
        shares["value"].agg(value="mean", n="size").reset_index().assign(model=""),
        rows="inequality",
        panels="table",
        names={str(table): f"Table {table}" for table in counts.index},
        xlabel="Rows that violate the definition (%)",
        limits=(-3, 103),
        unit="rows",
        title=f"RAGChecker's definitions are violated by {', '.join(tables)}",
        caption="H: hallucination, F: faithfulness, SK: self-knowledge, P: precision.",
    )
