"""Figure of the audit of Visual-RAG's tables."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers import audit_figure as shared
from vrag_kit.papers.audit import contradictions

_PERCENT = {  # check → (what is printed, factor to percent): the checks drawn on the right
    "average of the runs": ("average", 1),
    "nDCG@30 under its upper bound": ("nDCG@30", 1),
    "macro-F1 of the judge": ("macro-F1", 100),
}
_OTHERWISE = {"nDCG@30": "at most", "macro-F1": "nearest"}


def audit_figure(checks: pd.DataFrame) -> Figure:
    """Plots the audit: findings of each check (left) and contradictions between published
    percentages (right). Left: shares of rows, with counts. Right: reported and recomputed numbers.

    `checks` are the rows of `audit`.
    """
    found = contradictions(checks)
    rows = []
    for row in found[found["check"].isin(_PERCENT)].to_dict("records"):
        what, factor = _PERCENT[row["check"]]
        place = row["cell"].replace("one_in_k, k=", "1-in-")
        rows.append(
            {
                "name": f"{place}\n{what}, Table {row['table']}",
                "reported": factor * row["reported"],
                "recomputed": factor * row["recomputed"],
                "otherwise": _OTHERWISE.get(what, "recomputed"),
            }
        )
    return shared.audit_figure(checks, pd.DataFrame(rows, columns=list(shared.APART)))
