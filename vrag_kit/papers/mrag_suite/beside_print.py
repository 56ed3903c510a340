"""Results of one's own beside the paper's tables, which are numbers on other data."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.cells import NOTHING, interval_cells
from vrag_kit.papers.mrag_suite.printed import printed_range

FAMILIES = ("ragchecker", "mm_ragchecker")
"""The two families of metrics: RAGChecker's, and those of the paper's equations."""
DEFINITIONS = {
    "recall": ("recall", ""),
    "precision": ("precision", ""),
    "f1": ("f1", ""),
    "hallucination": ("hallucination", "neutral_share"),
    "faithfulness": ("faithfulness", "entailed_share"),
    "self_knowledge": ("self_knowledge", ""),
    "claim_recall": ("claim_recall", "answer_claim_recall"),
    "context_precision": ("context_precision", "evidence_used"),
}
"""Printed metric → (RAGChecker's, the paper's equation as we name it; "" where the paper
has none, or where it is 0 by definition, as self-knowledge is).
"""
_WITHOUT_ITEMS = {"precision", "recall", "f1", "answer_claim_recall"}
"""Metrics that look at no evidence, so that they know no modality."""


def beside_print(
    ours: pd.DataFrame,
    paper: pd.DataFrame,
    *,
    rows: Sequence[str],
    columns: Sequence[str] = ("metric",),
) -> pd.DataFrame:
    """`rows` down, after the column source ("here", "paper, other data"), and `columns`
    across: our cells "mean [low, high] (n = …)", the paper's numbers as they are.

    `ours` has value, ci_low, ci_high, n and what names a row or column, in percent;
    `paper` comes from a reader of `printed`. "–" where there is none.
    """
    here = ours.assign(source="here", cell=interval_cells(ours, n=True))
    cells = paper["value"].map("{:g}".format)
    there = paper.assign(source="paper, other data", cell=cells)
    both = pd.concat([here, there], ignore_index=True)
    index, across = ["source", *rows], list(columns)
    both[[*index, *across]] = both[[*index, *across]].fillna("")
    wide = both.pivot_table(
        index=index, columns=across, values="cell", aggfunc="first", sort=False, observed=True
    )
    return wide.fillna(NOTHING)


def claims_beside_print(means: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Printed definitions beside ours: rows printed metric and modality; columns what the
    paper's models reach (`printed_range`), then for each model RAGChecker's metric of
    that name, and what the paper's equation gives.

    `means` has model, family (of `FAMILIES`), metric, modality ("all", "image",
    "text"), value, ci_low, ci_high and n, in percent, of one data set and setting;
    `paper` is `printed_claims()` of one. "–" where there is no such number.
    """
    spread = printed_range(paper, ["metric", "modality"])
    told = means.assign(cell=interval_cells(means, n=True))
    columns = {spread.name: spread}
    for (model, family), part in told.groupby(["model", "family"], sort=False):
        cells = part.set_index(["metric", "modality"])["cell"]
        names = [_sought(str(metric), of, str(family)) for metric, of in spread.index]
        columns[f"{model}: {family}"] = cells.reindex(names).fillna(NOTHING).set_axis(spread.index)
    return pd.DataFrame(columns)


def _sought(metric: str, modality: str, family: str) -> tuple[str, str]:
    """What a printed metric is called in a family, and its modality there."""
    name = DEFINITIONS[metric][FAMILIES.index(family)]
    return name, "all" if name in _WITHOUT_ITEMS else modality
