"""Figures of claim metrics, by mode of evidence and source of labels, and of the checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import TINY, ci_cells, finding
from vrag_kit.papers.mrag_suite.claim_modes import CLAIM_METRICS, MODALITIES, MODE_NAMES
from vrag_kit.papers.mrag_suite.modes import strata_or_pooled
from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.plotting.diagnostics import confusion_plot
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import count_label

_SOURCES = {
    "true": "true labels",
    "corrected": "the checker's labels, corrected by a sample",
    "checker": "the checker's labels",
}
_DRAWN = {
    "faithfulness": "faithfulness: claims that documents support",
    "hallucination (RAGChecker)": "hallucination (RAGChecker): claims without support",
    "evidence utilization": "evidence utilization: documents that support a claim",
}
"""The drawn metrics, of `CLAIM_METRICS`."""
_NAMES = _DRAWN | MODE_NAMES | MODALITIES | _SOURCES
_FEWEST = 5
_SHORT = {"ENTAILMENT": "entails", "NEUTRAL": "neutral", "CONTRADICTION": "contra-\ndicts"}


def claim_figure(means: pd.DataFrame) -> Figure:
    """Draws the means of the best labels by mode of evidence, a row for each data set and stratum.
    `means` is `to_percent(compare_label_sources(…))`, here and below.
    """
    rows = _best(means)
    reach = rows[rows["measure"] == "faithfulness"].groupby("setting")["value"].agg(["min", "max"])
    gold, mixed = (f"{reach['min'][mode]:.0f} to {reach['max'][mode]:.0f}" for mode in MODES[:0:-1])
    title = f"documents support {gold} % of claims with gold only, {mixed} % with distractors too"
    return _forest(rows, ["stratum", "dataset"], "setting", title)


def modality_figure(means: pd.DataFrame) -> Figure:
    """Draws the means of the best labels over images and over texts, by mode of evidence; the title
    compares faithfulness of the first data set and model with gold only.
    """
    rows = _best(means[means["modality"] != "all"])
    some = rows[(rows["measure"] == "faithfulness") & (rows["setting"] == MODES[2])]
    first = some.drop_duplicates("modality")
    words = zip(first["modality"], ci_cells(first, decimals=0), strict=True)
    shares = ", ".join(f"by {modality}s {cell} %" for modality, cell in words)
    title = f"claims on {first['dataset'].iloc[0]} supported with gold only: {shares}"
    return _forest(rows, ["dataset", "setting"], "modality", title)


def label_figure(means: pd.DataFrame) -> Figure:
    """Draws the means by the checker's labels, corrected by those of a sample, and by true ones, a
    row for each data set and mode of evidence.
    """
    rows = _rows(means[means["modality"] == "all"])
    counts = rows.loc[rows["label_source"] == "corrected", "n_labelled"].dropna().astype(int)
    caption = f"Labelled: {count_label(sorted(set(counts)), 'answers')} of a data set and mode."
    return _forest(rows, ["dataset", "setting"], "label_source", _label_title(rows), caption)


def change_figure(changes: pd.DataFrame) -> Figure:
    """Draws `to_percent(mode_contrasts(…))` by stratum, without fixed ones and those of fewer than
    `_FEWEST` questions. The title is that of faithfulness with distractors, on most questions.
    """
    shown = ~changes["by_construction"] & (changes["n"] >= _FEWEST)
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
        caption=f"Left out: differences of fewer than {_FEWEST} questions.",
    )


def checker_figure(confusions: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """Draws the matrices of `confusions_by_mode` about images, and those about texts if a verdict
    about a text is wrong. "Unparsed" is left out where all verdicts are parsed.
    """
    drawn: dict[str, pd.DataFrame] = {}
    words = []
    for kind in ("image", "text"):
        of_kind = {f"{kind}s, {mode}": each[kind] for mode, each in confusions.items()}
        total = reduce(pd.DataFrame.add, of_kind.values())
        right, every = int(np.trace(total[total.index])), int(total.to_numpy().sum())
        used = [label for label in total if label in _SHORT or total[label].any()]
        if right < every or not drawn:
            drawn |= {name: matrix[used] for name, matrix in of_kind.items()}
            words.append(f"{right:,} of {every:,} verdicts about {kind}s")
    return confusion_plot(
        {name: each.rename(index=_SHORT, columns=_SHORT) for name, each in drawn.items()},
        truth="True label",
        predicted="Checker's verdict",
        unit="verdicts",
        title=f"the checker is right (on the diagonal) in {' and '.join(words)}",
        caption="Verdicts about texts that are not drawn are all right.",
    )


def _forest(
    rows: pd.DataFrame, by: Sequence[str], color: str, title: str, caption: str = ""
) -> Figure:
    """Means in percent, a panel for each metric of `_DRAWN`."""
    source = "" if color == "label_source" else f" by {_SOURCES[rows['label_source'].iloc[0]]}"
    return forest_plot(
        rows,
        rows=by,
        xlabel=f"Mean (%){source}",
        color=color,
        style="model",
        panels="measure",
        names=_NAMES,
        limits=(-3, 103),
        title=title,
        caption=caption,
    )


def _rows(means: pd.DataFrame) -> pd.DataFrame:
    """The rows of the drawn metrics that have an interval, with the metric's name as `measure`."""
    keys = pd.MultiIndex.from_frame(means[["family", "metric"]])
    rows = means.assign(measure=keys.map(CLAIM_METRICS.get))
    return rows[rows["measure"].isin(_DRAWN)].dropna(subset=["value", "ci_low"])


def _best(means: pd.DataFrame) -> pd.DataFrame:
    """The rows by true labels; where none are known, corrected ones, else the checker's."""
    rows = _rows(means)
    known = set(rows["label_source"])
    return rows[rows["label_source"] == next(name for name in _SOURCES if name in known)]


def _label_title(rows: pd.DataFrame) -> str:
    """How many means by true labels lie in the checker's intervals, and in corrected ones; without
    true labels how far the correction moves a mean at most.
    """
    keys = ["dataset", "model", "setting", "measure"]
    wide = {name: part.set_index(keys) for name, part in rows.groupby("label_source")}
    if "true" not in wide:
        moved = (wide["corrected"]["value"] - wide["checker"]["value"]).abs().max()
        return f"the correction moves a mean of the checker by up to {moved:.0f} points"
    held = []
    for name in ("checker", "corrected"):
        ends = wide[name][["ci_low", "ci_high"]].join(wide["true"]["value"], how="inner")
        inside = ends["value"].between(ends["ci_low"] - TINY, ends["ci_high"] + TINY)
        held.append(f"{inside.sum()} of {len(inside)}")
    return f"the checker's own intervals hold {held[0]} true means, the corrected ones {held[1]}"
