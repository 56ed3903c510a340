"""Figures of claim metrics, by mode of evidence and source of labels, and of the checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.report_tables import TINY, finding
from vrag_kit.claims.checking import reference_answers
from vrag_kit.claims.verdicts import UNPARSED, ClaimVerdicts
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.papers.mrag_suite.claims import MODALITIES, MODE_NAMES, metric_names
from vrag_kit.papers.mrag_suite.modes import FEWEST, SAME_EVIDENCE, strata_or_pooled
from vrag_kit.plotting.diagnostics import confusion_plot
from vrag_kit.plotting.images import Tile, answer_gallery, document_tile
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import (
    DARK,
    GREY,
    LIGHT,
    OUTCOME,
    PAGE,
    SMALL,
    count_label,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.types import Benchmark

_SOURCES = {
    "true": "true labels",
    "corrected": "the checker's labels, corrected by a sample",
    "checker": "the checker's labels",
}
_DRAWN = {
    "faithfulness": "faithfulness: claims that documents support",
    "hallucination (RAGChecker)": "hallucination (RAGChecker): incorrect claims without support",
    "evidence utilization": "evidence utilization: documents that support a claim",
}
"""The drawn metrics, of `CLAIM_METRICS`."""
_NAMES = _DRAWN | MODE_NAMES | MODALITIES | _SOURCES
_SHORT = {"ENTAILMENT": "entails", "NEUTRAL": "neutral", "CONTRADICTION": "contra-\ndicts"}


def claim_figure(
    means: pd.DataFrame, *, rows: Sequence[str], color: str, caption: str = ""
) -> Figure:
    """Draws the means by the best labels, a panel for each metric of `_DRAWN`: rows and colours by
    the columns `rows` and `color`, "setting" or "modality". `means` is
    `to_percent(compare_label_sources(…))`. The title has the range of faithfulness by colour.
    """
    best = _rows(means)
    known = set(best["label_source"])
    source = next(name for name in _SOURCES if name in known)
    best = best[best["label_source"] == source]
    faithful = best[best["measure"] == "faithfulness"].groupby(color, sort=False)["value"]
    ranges = faithful.agg(["min", "max"]).itertuples()
    reach = [f"{low:.0f} to {high:.0f} % ({_NAMES[str(name)]})" for name, low, high in ranges]
    title = f"documents support {', '.join(reach)} of the claims of answers"
    return _forest(best, rows, color, f"Mean (%) by {_SOURCES[source]}", title, caption)


def label_figure(means: pd.DataFrame) -> Figure:
    """Draws the means by the checker's labels, corrected by those of a sample, and by true ones, a
    row for each data set and mode of evidence. `means` is as in `claim_figure`; the title counts
    the means by true labels that lie in the checker's intervals, and in corrected ones.
    """
    rows = _rows(means)
    counts = rows.loc[rows["label_source"] == "corrected", "n_labelled"].dropna().astype(int)
    caption = f"Labelled: {count_label(sorted(set(counts)), 'answers')} of a data set and mode."
    keys = ["dataset", "model", "setting", "measure"]
    wide = {name: part.set_index(keys) for name, part in rows.groupby("label_source")}
    title = "means of claim metrics by the checker's labels, uncorrected and corrected"
    if "true" in wide:
        held = []
        for name in ("checker", "corrected"):
            ends = wide[name][["ci_low", "ci_high"]].join(wide["true"]["value"], how="inner")
            inside = ends["value"].between(ends["ci_low"] - TINY, ends["ci_high"] + TINY)
            held.append(f"{inside.sum()} of {len(inside)}")
        title = f"the checker's own intervals hold {held[0]} true means, the corrected {held[1]}"
    return _forest(rows, ["dataset", "setting"], "label_source", "Mean (%)", title, caption)


def change_figure(changes: pd.DataFrame) -> Figure:
    """Draws `to_percent(mode_contrasts(…))` by stratum, without fixed ones and those of fewer than
    `FEWEST` questions. The title is that of faithfulness with distractors, on most questions.
    """
    shown = ~changes["by_construction"] & (changes["n"] >= FEWEST)
    drawn = strata_or_pooled(changes[shown & changes["metric"].isin(_DRAWN)]).assign(n_failed=0)
    added = (changes["metric"] == "faithfulness") & (changes["setting"] == MODES[1])
    rows = changes[added].assign(drawn=changes.index[added].isin(drawn.index))
    row = rows.sort_values(["drawn", "n"]).to_dict("records")[-1]
    words = f"on {row['dataset']} ({row['stratum']}) faithfulness with gold and distractors"
    return forest_plot(
        drawn,
        rows=["stratum", "dataset"],
        color="metric",
        style="model",
        panels="setting",
        names=_NAMES,
        title=finding(row, words, "with gold only"),
        caption=SAME_EVIDENCE,
    )


def checker_figure(counts: pd.DataFrame) -> Figure:
    """Draws `confusion_counts` about images, and those about texts if a verdict about a text is
    wrong, a matrix for each mode. "Unparsed" is left out where all verdicts are parsed.
    """
    drawn: dict[str, pd.DataFrame] = {}
    words = []
    for kind in ("image", "text"):
        of_kind = counts[counts["evidence_kind"] == kind]
        right = of_kind.loc[of_kind["true_label"] == of_kind["checker_label"], "n"].sum()
        if right < of_kind["n"].sum() or not drawn:
            words.append(f"{right:,} of {of_kind['n'].sum():,} verdicts about {kind}s")
            if not of_kind.loc[of_kind["checker_label"] == UNPARSED, "n"].any():
                of_kind = of_kind[of_kind["checker_label"] != UNPARSED]
            for mode, part in of_kind.replace(_SHORT).groupby("setting", sort=False):
                matrix = part.pivot_table("n", "true_label", "checker_label", sort=False)
                drawn[f"{kind}s, {MODE_NAMES[str(mode)]}"] = matrix
    return confusion_plot(
        drawn,
        truth="True label",
        predicted="Checker's verdict",
        unit="verdicts",
        title=f"the checker is right (on the diagonal) in {' and '.join(words)}",
        caption="Verdicts about texts that are not drawn are all right.",
    )


def _forest(
    rows: pd.DataFrame, by: Sequence[str], color: str, xlabel: str, title: str, caption: str
) -> Figure:
    """Means in percent, a panel for each metric of `_DRAWN`."""
    look: dict[str, Any] = {"style": "model", "panels": "measure", "names": _NAMES}
    look |= {"xlabel": xlabel, "title": title, "caption": caption}
    return forest_plot(rows, rows=by, color=color, limits=(-3, 103), **look)


def _rows(means: pd.DataFrame) -> pd.DataFrame:
    """The rows of the drawn metrics that have an interval, with the metric's name as `measure`."""
    rows = means.assign(measure=metric_names(means))
    return rows[rows["measure"].isin(_DRAWN)].dropna(subset=["value", "ci_low"])


_VERDICTS = {
    1.0: ("supported", OUTCOME["correct"], "white"),
    0.0: ("neutral", LIGHT, DARK),
    -1.0: ("contradicted", OUTCOME["incorrect"], "white"),
}
_UNPARSED = ("unparsed", "white", DARK)
_MIDDLE = {"ha": "center", "va": "center", "fontsize": SMALL}


def checked_answer(
    checked: pd.DataFrame, answers: Mapping[str, tuple[Benchmark, pd.DataFrame]]
) -> tuple[Figure, pd.DataFrame]:
    """Draws the checker's verdicts on one answer: its claims down, the accepted answers and the
    documents shown across. A true label that differs stands below the verdict. Drawn is the answer
    of at most four claims with the most kinds of verdicts, the first with gold and distractors if
    any. Returns the figure and the verdicts: dataset, query_id, claim, doc_id, verdict, true_label
    (the verdict where no truth is known), model, setting.
    """
    sheets = checked.dropna(subset="sheet")
    mixed = sheets[sheets["setting"] == MODES[1]]
    sheets = mixed if mixed["sheet"].map(_kinds).any() else sheets
    row = sheets.iloc[int(sheets["sheet"].map(_kinds).to_numpy().argmax())]
    sheet, true = row["sheet"], row.get("true_sheet")
    documents = [item.doc_id for item in sheet.items]
    cells = product(sheet.claims, ["accepted answers", *documents])
    table = pd.DataFrame(cells, columns=["claim", "doc_id"]).assign(
        **{key: row[key] for key in ("dataset", "query_id", "model", "setting")}
    )
    for name, of in (("verdict", sheet), ("true_label", true if pd.notna(true) else sheet)):
        scores = of.verdicts[: len(sheet.claims)].ravel()
        table[name] = [_VERDICTS.get(score, _UNPARSED)[0] for score in scores.tolist()]
    benchmark = answers[row["dataset"]][0]
    query = benchmark.queries[sheet.query_id]
    reference = " | ".join(reference_answers(query))
    heads = [Tile(None, "question", query.text)]
    heads += [Tile(None, "reference answer", shorten(reference, 110, placeholder=" …"))]
    for doc_id in documents:
        tile = document_tile(benchmark, sheet.query_id, doc_id)
        text = benchmark.corpus[doc_id].text or ""  # texts of one species differ at their end
        end = f"… {' '.join(text.split()[-12:])}"
        heads.append(replace(tile, below=end) if tile.below and text else tile)
    figure = _draw_matrix(heads, table)
    right = (table["verdict"] == table["true_label"]).sum()
    title = f"the checker is right in {right} of {len(table)} verdicts on one answer"
    if pd.isna(true):
        title = f"the checker's verdicts on the {len(sheet.claims)} claims of one answer"
    caption = f"{row['dataset']}, model {row['model']}, which answered: “{row['answer']}”"
    caption += f" Reference answer: “{reference}” True: the label by what the document shows of the"
    caption += " species, if it is of that."
    set_caption(figure, title, caption)
    return figure, table


def _draw_matrix(heads: Sequence[Tile], table: pd.DataFrame) -> Figure:
    """Verdicts below the heads of their columns, of which the first is that of the claims."""
    claims, room = table["claim"].unique(), PAGE / (len(heads) + 1)
    widths, heights = [2, *[1] * (len(heads) - 1)], [2.2, *[1] * len(claims)]
    height = 1.4 + 0.55 * len(claims)
    figure, axes = new_figure(
        1 + len(claims), len(heads), height=height, width_ratios=widths, height_ratios=heights
    )
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
    for axis, head in zip(axes[0], heads, strict=True):
        if head.image:
            axis.imshow(np.asarray(head.image.open()))
            axis.set_anchor("N")
        words = fit(head.below, 2 * room if axis is axes[0][0] else room)
        axis.text(0.5, 1, words, transform=axis.transAxes, **_MIDDLE | {"va": "top"})
        axis.set_title(head.title or "distractor", fontsize=SMALL, loc="center")
    for place, (axis, claim) in enumerate(zip(axes[1:, 0], claims, strict=True), start=1):
        axis.text(0.5, 0.5, fit(f"Claim {place}: {claim}", 2 * room), **_MIDDLE)
    looks = {name: colors for name, *colors in [*_VERDICTS.values(), _UNPARSED]}
    for axis, cell in zip(axes[1:, 1:].flat, table.to_dict("records"), strict=True):
        wrong = cell["verdict"] != cell["true_label"]
        words = cell["verdict"] + f"\n(true:\n{cell['true_label']})" * wrong
        background, color = looks[cell["verdict"]]
        axis.set_facecolor(background)
        axis.text(0.5, 0.5, words, color=color, **_MIDDLE)
    return figure


def suite_errors(
    datasets: Mapping[str, Benchmark], judged: Mapping[str, pd.DataFrame], *, seed: int = 0
) -> tuple[Figure, pd.DataFrame]:
    """Draws answers with gold evidence alone that score 0, of the data sets whose documents are
    images: a random sample, one a question. Returns the figure and all such answers.
    """
    with_images = [
        name
        for name, benchmark in datasets.items()
        if any(document.image for document in benchmark.corpus.values())
    ]
    every = pd.concat({name: judged[name] for name in with_images}, names=["dataset"])
    only = every[every["setting"] == MODES[2]].reset_index("dataset")
    wrong = only[only["score"] == 0].sample(frac=1, random_state=seed)
    one = wrong[wrong["dataset"] == wrong["dataset"].iloc[0]] if len(wrong) else wrong
    benchmark = datasets[one["dataset"].iloc[0] if len(one) else with_images[0]]
    counts = [f"{name} {n}" for name, n in only["dataset"].value_counts(sort=False).items()]
    title = f"{len(wrong)} of {len(only)} answers with gold only score 0; some, of {benchmark.name}"
    models = f"Answers: {', '.join(counts)}. Model: {', '.join(only['model'].unique())}."
    figure = answer_gallery(benchmark, one, title=title, caption=models)
    columns = ["dataset", "model", "setting", "query_id", "answer", "verdict", "score"]
    return figure, wrong[columns]


def _kinds(sheet: ClaimVerdicts) -> int:
    """The number of kinds of verdicts on an answer's claims; 0 for more than four claims."""
    if not 1 < len(sheet.claims) <= 4:
        return 0
    return len(np.unique(sheet.on_claims))


_METRICS = {"H": "hallucination", "F": "faithfulness", "SK": "self-knowledge", "P": "precision"}
_LOOKS = {True: (GREY, "obeys the definition"), False: (OUTCOME["incorrect"], "violates it")}


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
    palette = {holds: color for holds, (color, _) in _LOOKS.items()}
    for axis, (name, part) in zip(axes[0], panels, strict=True):
        sns.stripplot(
            part,
            x="excess",
            y="table",
            hue="holds",
            palette=palette,
            jitter=0.3,
            size=3,
            order=list(counts),
            orient="h",
            legend=False,
            ax=axis,
        )
        words = " ".join(_METRICS.get(word, word) for word in str(name).split())
        count = f"{(~part['holds']).sum()} of {len(part)} rows violate"
        axis.set_title(fit(f"{words.replace('at most', '≤')}\n{count}", 1.55, 8))
        axis.axvline(0, color="black", linewidth=0.8)
        axis.grid(axis="y", visible=False)
        axis.set(xlabel="", ylabel="")
    figure.supxlabel("Points above what the definitions allow", fontsize=8)
    labels = [f"Table {table}\n{count} rows\nviolate" for table, count in counts.items()]
    axes[0][0].set_yticks(range(len(labels)), labels)
    handles = [
        Line2D([], [], color=color, marker=".", linestyle="", label=f"a row that {words}")
        for color, words in _LOOKS.values()
    ]
    tables = ", ".join(f"{count} rows of Table {table}" for table, count in counts.items())
    caption = "A dot is a row. At the left: the rows that violate any definition."
    title = f"RAGChecker's definitions are violated by {tables} of the MRAG-Suite paper"
    set_caption(figure, title, caption, handles)
    return figure
