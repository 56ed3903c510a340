"""Figure of the audit of CRAG-MM's tables."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers import audit_figure as shared
from vrag_kit.papers.audit import contradictions

_COUNTS = ("domains", "question types")
_SHORT = {
    "shares add up to 100": "sum of shares",
    "truthfulness, single questions": "truthfulness",
    "part not larger than whole": "whole and part",
    "share with entity retrieved": "share retrieved",
    "text vs. tables": "text",
}
_WIDTH = 34  # of a name, in letters


def audit_figure(checks: pd.DataFrame) -> Figure:
    """Plots the audit: findings of each check (left) and contradictions in points, the largest
    first (right). Left: shares of rows, with counts. Right: reported and recomputed numbers,
    without contradictions between counts.

    `checks` are the rows of `audit`.
    """
    found = contradictions(checks)
    found = found[~found["cell"].isin(_COUNTS)]
    size = (found["reported"] - found["recomputed"]).abs()
    rows = []
    for row in found.loc[size.sort_values(ascending=False, kind="stable").index].to_dict("records"):
        place = textwrap.fill(row["cell"].replace("_", " "), _WIDTH)
        table = f"Table {row['table']}".replace("Table figure", "Figure")
        rows.append(
            {
                "name": f"{place}\n{_SHORT.get(row['check'], row['check'])}, {table}",
                "reported": row["reported"],
                "recomputed": row["recomputed"],
                "otherwise": "recomputed",
            }
        )
    return shared.audit_figure(checks, pd.DataFrame(rows, columns=list(shared.APART)))
