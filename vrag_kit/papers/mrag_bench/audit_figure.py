"""Figure of the audit of MRAG-Bench's tables."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers import audit_figure as shared
from vrag_kit.papers.audit import contradictions

_DRAWN = {  # check → what is printed: the checks whose contradictions are drawn
    "difference from no RAG": "difference from no RAG",
    "overall, all questions": "overall",
    "human gain, all questions": "gain",
    "text vs. tables": "text",
}
_SHORT = {  # as settings are called beside the bars
    ", no_rag, none": ", no RAG",
    ", retrieved_rag, image": ", retrieved",
    ", gt_rag, image": ", GT",
    ", overall": "",
    "Human performance": "people",
}
_WIDTH = 30  # of a name, in letters


def audit_figure(checks: pd.DataFrame) -> Figure:
    """Plots the audit: findings of each check (left) and contradictions in points, the largest
    first (right). Left: shares of rows, with counts. Right: reported and recomputed numbers; cells
    of two tables once, without shares that are no whole number of questions.

    `checks` are the rows of `audit`.
    """
    found = contradictions(checks)
    in_points = found["check"].isin(_DRAWN) & found["table"].ne("figure 2")
    once = found[in_points].drop_duplicates(["check", "cell", "reported", "recomputed"])
    size = (once["reported"] - once["recomputed"]).abs()
    once = once.loc[size.sort_values(ascending=False, kind="stable").index]
    rows = []
    for row in once.to_dict("records"):
        place = row["cell"]
        for setting, short in _SHORT.items():
            place = place.replace(setting, short)
        what = f"{_DRAWN[row['check']]}, Table {row['table']}"
        rows.append(
            {
                "name": f"{textwrap.fill(place, _WIDTH)}\n{what}",
                "reported": row["reported"],
                "recomputed": row["recomputed"],
                "otherwise": "recomputed",
            }
        )
    return shared.audit_figure(checks, pd.DataFrame(rows, columns=list(shared.APART)))
