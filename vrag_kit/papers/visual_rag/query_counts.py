"""How many queries a table is about, told from its printed percentages.

What a percentage printed to two decimals gives away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

STEP = 0.5
"""Most verdicts are 0, 0.5 or 1, so that most sums over one run are multiples of this.

A judge may give other scores: a cell that does not fit proves nothing.
"""
CANDIDATES = range(200, 376)
"""Up to the 374 of the paper, and one more.

Numbers far below are left out, as any with a factor in common with the true one fits in
part.
"""
ROUNDING = 0.0051


def query_counts(percentages: Sequence[float] | pd.Series) -> pd.DataFrame:
    """Candidates for the number n of queries behind means of one run each, best first:
    n, fits, by_chance.

    `fits` counts the percentages, printed to two decimals, that are a multiple of 0.5/n
    but for rounding; `by_chance` is how many of them would be for numbers that have
    nothing to do with n. Of two that fit as well the smaller comes first.
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
