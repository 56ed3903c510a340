"""Estimates the number of queries behind a table from its published percentages.

Percentages with two decimals reveal it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

STEP = 0.5
"""Most verdicts are 0, 0.5 or 1, so most sums over one run are multiples of this.

A judge may give other scores: a cell that does not fit proves nothing.
"""
CANDIDATES = range(200, 376)
"""Candidate numbers of queries: up to the paper's 374, and one more.

Much smaller numbers are excluded: any number with a factor in common with the true one fits in
part.
"""
ROUNDING = 0.0051


def query_counts(percentages: Sequence[float] | pd.Series) -> pd.DataFrame:
    """Ranks candidates for the number n of queries behind means of one run each, best first.
    Columns: n, fits, by_chance.

    `fits` counts the percentages, published with two decimals, that are a multiple of 0.5/n up to
    rounding; `by_chance` is the count expected for numbers unrelated to n. Ties are in ascending
    order of n.
    """
    values, n = np.asarray(percentages, dtype=float), np.array(CANDIDATES)
    steps = 100 * STEP / n
    distance = np.abs(values[:, None] - steps * np.round(values[:, None] / steps))
    table = pd.DataFrame(
        {
            "n": n,
            "fits": (distance <= ROUNDING).sum(axis=0),
            "by_chance": len(values) * 2 * ROUNDING / steps,
        }
    )
    return table.sort_values("fits", ascending=False, kind="stable", ignore_index=True)
