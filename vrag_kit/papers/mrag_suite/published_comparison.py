"""Comparison of measured results with the paper's tables, which are numbers on other data."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING, ci_cells
from vrag_kit.papers.mrag_suite.equations import IN_PLACE
from vrag_kit.papers.mrag_suite.printed import published_range

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
    "context_precision": ("context_precision", "evidence_utilization"),
}
"""Maps a published metric to (RAGChecker's, the paper's equation by our name; "" where the paper
has none, or where it is 0 by definition, as self-knowledge is).
"""
ALWAYS_0 = "0 by the equation"
_WITHOUT_ITEMS = {"precision", "recall", "f1", "answer_claim_recall"}
"""Metrics that use no evidence, and have no modality."""


def compare_claims_to_paper(
    means: pd.DataFrame, printed: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Compares the published claim metrics with ours: rows data set, published metric and modality.
    Columns are the range of the paper's models in each of `printed` (`published_range`), then for
    each model RAGChecker's metric of that name, and the value of the paper's equation.

    `means` has dataset, model, family (of `FAMILIES`), metric, modality ("all", "image", "text"),
    value, ci_low, ci_high and n, in percent, of one setting, as from `claim_means_by_modality`;
    `printed` maps a title to published claim metrics of one setting (Tables 3, 14 and 15). Data
    sets in none of `printed` are excluded. "–" where there is no such number.
    """
    row = ["dataset", "metric", "modality"]
    known = {title: published_range(table, row) for title, table in printed.items()}
    rows = pd.concat(list(known.values())).index.unique()
    rows = rows[rows.get_level_values("dataset").isin(means["dataset"])]
    columns = {f"paper, {title}": spread.reindex(rows) for title, spread in known.items()}
    told = means.assign(cell=ci_cells(means, n=True))
    for (model, family), part in told.groupby(["model", "family"], sort=False):
        cells = part.set_index(row)["cell"]
        names = [_sought(each, str(family)) for each in rows]
        column = cells.reindex(names).set_axis(rows)
        zero = (family == FAMILIES[1]) & (rows.get_level_values("metric") == "self_knowledge")
        columns[f"{model}: {family}"] = column.mask(zero, ALWAYS_0)
    return pd.DataFrame(columns).fillna(NOTHING)


def compare_gaps_to_paper(
    equations: pd.DataFrame, means: pd.DataFrame, paper: pd.DataFrame
) -> pd.DataFrame:
    """Compares Table 4's diagnostics across modalities with ours: rows data set and published name.
    Columns are the published range (`published_range`), then for each model the equation's value,
    and our metric in place of those that are always 0.

    `equations` (as `equation_means` gives them) and `means` (as `claim_means` does) have
    dataset and model, and are in percent, of one setting; `paper` is `published("mrag_suite", 4)`.
    "–" where there is no such number.
    """
    row = ["dataset", "metric"]
    spread = published_range(paper[paper["dataset"].isin(equations["dataset"])], row)
    columns = {spread.name: spread}
    ours = means.assign(cell=ci_cells(means, n=True))
    for model, part in equations.groupby("model", sort=False):
        said = part.assign(cell=ci_cells(part, n=True)).set_index(row)["cell"]
        columns[f"{model}: by the equation"] = said.reindex(spread.index)
        own = ours[ours["model"] == model].set_index(["metric", "modality"])
        placed = [own.loc[[key]].assign(metric=name) for name, key in IN_PLACE.items()]
        cells = pd.concat(placed).set_index(row)["cell"]
        columns[f"{model}: in its place"] = cells.reindex(spread.index)
    return pd.DataFrame(columns).fillna(NOTHING)


def _sought(row: tuple[str, str, str], family: str) -> tuple[str, str, str]:
    """What a printed row is called in a family: data set, metric, modality."""
    name = DEFINITIONS[row[1]][FAMILIES.index(family)]
    return row[0], name, "all" if name in _WITHOUT_ITEMS else row[2]
