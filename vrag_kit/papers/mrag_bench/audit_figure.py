"""What the audit of MRAG-Bench's tables finds, in one look."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers import audit_figure as shared
from vrag_kit.papers.audit_rows import contradictions

_DRAWN = {  # check → what is printed: the checks whose contradictions are drawn
    "difference from no RAG": "difference from no RAG",
    "overall, all questions": "overall",
    "gain of people, all questions": "gain",
    "text against tables": "text",
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
    """Left: what every check found, as shares of its rows with their numbers. Right: the
    contradictions in points, the largest first, each beside what follows from the rest;
    cells that two tables print once, without shares that are no whole number of
    questions.

    `checks` as `audit` gives them.
    """
    found = contradictions(checks)
    in_points = found["check"].isin(_DRAWN) & found["table"].ne("figure 2")
    once = found[in_points].drop_duplicates(["check", "where", "printed", "recomputed"])
    size = (once["printed"] - once["recomputed"]).abs()
    once = once.loc[size.sort_values(ascending=False, kind="stable").index]
    rows = []
    for row in once.to_dict("records"):
        place = row["where"]
        for setting, short in _SHORT.items():
            place = place.replace(setting, short)
        what = f"{_DRAWN[row['check']]}, Table {row['table']}"
        rows.append(
            {
                "name": f"{textwrap.fill(place, _WIDTH)}\n{what}",
                "printed": row["printed"],
                "recomputed": row["recomputed"],
                "otherwise": "recomputed",
            }
        )
    return shared.audit_figure(checks, pd.DataFrame(rows, columns=list(shared.APART)))
