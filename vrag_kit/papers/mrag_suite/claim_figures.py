"""Figures of claim metrics, by mode of evidence and source of labels, and of the checker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import TINY, ci_cells, finding
from vrag_kit.papers.mrag_suite.claim_modes import CLAIM_METRICS, MODALITIES, MODE_NAMES
from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.plotting.diagnostics import confusion_plot, heat_table
from vrag_kit.plotting.panels import forest_plot, point_plot
from vrag_kit.plotting.style import count_label

_SOURCES = {
    "true": "true labels",
    "corrected": "the checker's labels, corrected by a sample",
    "checker": "the checker's labels",
}
_NAMES = {name: name.replace("MM-RAGChecker, ", "") for name in CLAIM_METRICS.values()}
_NAMES |= MODE_NAMES | MODALITIES | _SOURCES
_SPACE = "\N{NO-BREAK SPACE}"
_FEWEST = 5
_SHORT = {"ENTAILMENT": "entails", "NEUTRAL": "neutral", "CONTRADICTION": "contra-\ndicts"}


def claim_table(means: pd.DataFrame) -> Figure:
    """Draws the means of the best labels as a heat map: data sets, strata and modes down, metrics
    across. `means` is `to_percent(compare_label_sources(…))`, here and below.
    """
    rows = _best(means)
    parts = ["dataset", "stratum", *(["model"] if rows["model"].nunique() > 1 else [])]
    counts = rows.groupby(parts)["n"].transform("max")
    words = rows[parts].agg(", ".join, axis=1)
    rows = rows.assign(part=words + counts.map(f" (n{_SPACE}={_SPACE}{{:,.0f}})".format))
    faithful = rows[rows["measure"] == "faithfulness"]
    reach = faithful.groupby("setting")["value"].agg(["min", "max"])
    gold, mixed = (f"{reach['min'][mode]:.0f}–{reach['max'][mode]:.0f} %" for mode in MODES[:0:-1])
    title = (
        f"documents support {gold} of claims with gold evidence only, {mixed} with distractors"
        " beside it"
    )
    caption = f"In percent, by {_SOURCES[rows['label_source'].iloc[0]]}. n: questions, at most."
    keys = ["part", "setting"]
    return heat_table(
        rows, rows=keys, columns="measure", names=_NAMES, title=title, caption=caption
    )


def modality_figure(means: pd.DataFrame) -> Figure:
    """Draws the means of the best labels over images and over texts, by mode of evidence; the title
    compares faithfulness of the first data set and model with gold only.
    """
    rows = _best(means[means["modality"] != "all"])
    some = rows[(rows["measure"] == "faithfulness") & (rows["setting"] == MODES[2])]
    first = some.drop_duplicates("modality")
    words = zip(first["modality"], ci_cells(first, decimals=0), strict=True)
    shares = ", ".join(f"over {modality}s {cell} %" for modality, cell in words)
    title = f"claims that gold documents support, {first['dataset'].iloc[0]}: {shares}"
    return point_plot(
        rows,
        x="setting",
        ylabel="Mean (%)",
        color="modality",
        style="model",
        panels="measure",
        names=_NAMES,
        limits=(-3, 103),
        title=title,
    )


def label_figure(means: pd.DataFrame) -> Figure:
    """Draws the means by the checker's labels, corrected by those of a sample, and by true ones, a
    panel for each mode of evidence.
    """
    rows = _rows(means[means["modality"] == "all"])
    counts = rows.loc[rows["label_source"] == "corrected", "n_labelled"].dropna().astype(int)
    caption = f"Labelled: {count_label(sorted(set(counts)), 'answers')} of a row and mode."
    return forest_plot(
        rows,
        rows=["dataset", "measure"],
        xlabel="Mean (%)",
        color="label_source",
        style="model",
        panels="setting",
        names=_NAMES,
        limits=(-3, 103),
        title=_label_title(rows),
        caption=caption,
    )


def change_figure(changes: pd.DataFrame) -> Figure:
    """Draws `to_percent(mode_contrasts(…))`, without fixed ones and those of fewer than `_FEWEST`
    questions. The title is that of faithfulness with distractors, on most questions.
    """
    shown = changes[~changes["by_construction"] & (changes["n"] >= _FEWEST)]
    added = (changes["metric"] == "faithfulness") & (changes["setting"] == MODES[1])
    row = changes[added].sort_values("n").to_dict("records")[-1]
    words = f"on {row['dataset']}, faithfulness with gold and distractors"
    return forest_plot(
        shown.assign(n_failed=0),
        rows=["dataset", "metric"],
        color="stratum",
        style="model",
        panels="setting",
        names=_NAMES,
        title=finding(row, words, "with gold only"),
    )


def checker_figure(confusions: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """Draws the matrices of `confusions_by_mode` about images, and those about texts if a verdict
    about a text is wrong. "Unparsed" is left out where all verdicts are parsed.
    """
    drawn: dict[str, pd.DataFrame] = {}
    words = []
    for kind in ("image", "text"):
        of_kind = {f"{kind}, {mode}": each[kind] for mode, each in confusions.items()}
        total = reduce(pd.DataFrame.add, of_kind.values())
        right, every = int(np.trace(total[total.index])), int(total.to_numpy().sum())
        words.append(f"{right:,} of {every:,} verdicts about {kind}s")
        used = [label for label in total if label in _SHORT or total[label].any()]
        if right < every or not drawn:
            drawn |= {name: matrix[used] for name, matrix in of_kind.items()}
    return confusion_plot(
        {name: each.rename(index=_SHORT, columns=_SHORT) for name, each in drawn.items()},
        truth="True label",
        predicted="Checker's verdict",
        unit="verdicts",
        title=f"the checker is right in {' and '.join(words)}",
    )


def _rows(means: pd.DataFrame) -> pd.DataFrame:
    """The rows of `CLAIM_METRICS` that have an interval, with the metric's name as `measure`."""
    keys = pd.MultiIndex.from_frame(means[["family", "metric"]])
    rows = means.assign(measure=keys.map(CLAIM_METRICS.get))
    return rows.dropna(subset=["measure", "value", "ci_low"])


def _best(means: pd.DataFrame) -> pd.DataFrame:
    """The rows by true labels; where none are known, corrected ones, else the checker's."""
    rows = _rows(means)
    known = set(rows["label_source"])
    best = rows[rows["label_source"] == next(name for name in _SOURCES if name in known)]
    order = list(CLAIM_METRICS.values()).index
    return best.sort_values("measure", key=lambda names: names.map(order), kind="stable")


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
