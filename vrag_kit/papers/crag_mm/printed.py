"""Published numbers of the paper in our result format: truthfulness by arm, and retrieval. They are
compared with ours as numbers on other data.
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING, TableRow, ci_cells, report_table
from vrag_kit.papers.published import format_spread, published

SINGLE, MULTI = "single_turn", "multi_turn"
SHOWN = ("accuracy", "missing", "hallucination", "truthfulness", "early_stop")
"""Metrics of the published tables; early_stop only in those of conversations."""


def published_range(table: int) -> pd.DataFrame:
    """Formats the range of the paper's nine models in Table 8 (single questions) or 9
    (conversations), "−22.4 to 7.9, median −13.1": rows setting, columns `SHOWN`, in percent.
    """
    wide = format_spread(published("crag_mm", table), ["setting", "metric"]).unstack()
    return wide.reindex(columns=[name for name in SHOWN if name in wide])


def truthfulness_table(means: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Formats results: rows (source, model, setting), columns `SHOWN`, n and failed. Cells are
    "mean [low, high]" of `to_percent(conversation_means(…))`, followed, where conversations have no
    score, by the means if all of these were incorrect, or correct.

    `paper`, such as `published("crag_mm", 8)`, is added below as "reported, other data".
    """
    ours = means[means["metric"].isin(SHOWN)]
    cells = ci_cells(ours) + [_bounds(row) for row in ours.to_dict("records")]
    ours = ours.assign(source="here", cell=cells)
    counts = ours.groupby(["source", "model", "setting"], sort=False)
    told = counts.agg(n=("n", "max"), failed=("n_failed", "max")).astype(str)
    tables = [ours]
    if paper is not None:
        cells = paper["value"].map("{:.1f}".format)
        tables.append(paper.assign(source="reported, other data", cell=cells))
    both = pd.concat(tables, ignore_index=True)
    wide = report_table(both, rows=["source", "model", "setting"], cells=both["cell"])
    wide = wide.reindex(columns=[name for name in SHOWN if name in wide])
    return wide.join(told).fillna(NOTHING)


def _bounds(row: TableRow) -> str:
    bounds = f" ({row['bound_low']:.1f} to {row['bound_high']:.1f})"
    return bounds if row["n_failed"] else ""
