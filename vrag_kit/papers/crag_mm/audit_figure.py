"""What the audit of CRAG-MM's tables finds, in one look."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers import audit_figure as shared
from vrag_kit.papers.audit_rows import contradictions

_COUNTS = ("domains", "question types")
_SHORT = {
    "shares add up to 100": "sum of shares",
    "truthfulness, single questions": "truthfulness",
    "a whole and its part": "whole and part",
    "share whose entity was found": "share found",
    "text against tables": "text",
}
_WIDTH = 34  # of a name, in letters


def audit_figure(checks: pd.DataFrame) -> Figure:
    """Left: what every check found, as shares of its rows with their numbers. Right: the
    contradictions in points, the largest first, each beside what follows from the rest,
    but for those of counts.

    `checks` as `audit` gives them.
    """
    found = contradictions(checks)
    found = found[~found["where"].isin(_COUNTS)]
    size = (found["printed"] - found["recomputed"]).abs()
    rows = []
    for row in found.loc[size.sort_values(ascending=False, kind="stable").index].to_dict("records"):
        place = textwrap.fill(row["where"].replace("_", " "), _WIDTH)
        table = f"Table {row['table']}".replace("Table figure", "Figure")
        rows.append(
            {
                "name": f"{place}\n{_SHORT.get(row['check'], row['check'])}, {table}",
                "printed": row["printed"],
                "recomputed": row["recomputed"],
                "otherwise": "recomputed",
            }
        )
    return shared.audit_figure(checks, pd.DataFrame(rows, columns=list(shared.APART)))
