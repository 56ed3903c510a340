"""Results of one's own beside the paper's tables, which are numbers on other data."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.analysis.cells import NOTHING, interval_cells
from vrag_kit.papers.mrag_suite.equations import IN_PLACE
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
ALWAYS_0 = "0 by the equation"
_WITHOUT_ITEMS = {"precision", "recall", "f1", "answer_claim_recall"}
"""Metrics that look at no evidence, so that they know no modality."""


def claims_beside_print(means: pd.DataFrame, printed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Printed definitions beside ours: rows data set, printed metric and modality; columns
    what the paper's models reach in each of `printed` (`printed_range`), then for each
    model RAGChecker's metric of that name, and what the paper's equation gives.

    `means` has dataset, model, family (of `FAMILIES`), metric, modality ("all",
    "image", "text"), value, ci_low, ci_high and n, in percent, of one setting, as
    `claim_means_apart` gives them; `printed` is title → `printed_claims()` of one
    setting. Data sets that none of `printed` has are left out. "–" where there is no such
    number.
    """
    row = ["dataset", "metric", "modality"]
    known = {title: printed_range(table, row) for title, table in printed.items()}
    rows = pd.concat(list(known.values())).index.unique()
    rows = rows[rows.get_level_values("dataset").isin(means["dataset"])]
    columns = {f"paper, {title}": spread.reindex(rows) for title, spread in known.items()}
    told = means.assign(cell=interval_cells(means, n=True))
    for (model, family), part in told.groupby(["model", "family"], sort=False):
        cells = part.set_index(row)["cell"]
        names = [_sought(each, str(family)) for each in rows]
        column = cells.reindex(names).set_axis(rows)
        zero = (family == FAMILIES[1]) & (rows.get_level_values("metric") == "self_knowledge")
        columns[f"{model}: {family}"] = column.mask(zero, ALWAYS_0)
    return pd.DataFrame(columns).fillna(NOTHING)


def gaps_beside_print(
    equations: pd.DataFrame, means: pd.DataFrame, paper: pd.DataFrame
) -> pd.DataFrame:
    """Table 4's diagnostics across modalities: rows data set and printed name; columns what
    it prints (`printed_range`), then for each model what the equation gives, and what
    the kit has in the place of those that are 0 whatever a model says.

    `equations` (as `equation_means` gives them) and `means` (as `claim_means` does) have
    dataset and model, and are in percent, of one setting; `paper` is `printed_gaps()`.
    "–" where there is no such number.
    """
    row = ["dataset", "metric"]
    spread = printed_range(paper[paper["dataset"].isin(equations["dataset"])], row)
    columns = {spread.name: spread}
    ours = means.assign(cell=interval_cells(means, n=True))
    for model, part in equations.groupby("model", sort=False):
        said = part.assign(cell=interval_cells(part, n=True)).set_index(row)["cell"]
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
