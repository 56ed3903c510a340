"""Verdict on the interval of a difference: equivalent, different, or inconclusive."""

from __future__ import annotations

import numpy as np
import pandas as pd

MARGIN = 3.0
"""Points within which two accuracies count as the same: about the size of the smallest
gain by a clue that the paper reports (2 to 6 points, section 5.3).
"""
EQUIVALENT = "equivalent"
DIFFERENT = "different"
INCONCLUSIVE = "inconclusive"
NOT_COMPARABLE = "not comparable"


def with_equivalence_verdict(table: pd.DataFrame, margin: float | pd.Series) -> pd.DataFrame:
    """Adds the column verdict, from the 95 % interval of a difference (ci_low and ci_high) and
    `margin`, in the same unit.

    "equivalent": the interval lies within ±margin, which is stricter than two one-sided tests at 5
    % (these use the 90 % interval). It also applies if the interval excludes 0: the difference is
    significant but too small to matter. "different": the interval excludes 0, and is not within the
    margin. "inconclusive": neither, as where there is no interval. A cell's verdict depends on that
    cell alone, without a correction for multiple tests, and is the same in every table with the
    cell.
    """
    low, high = table["ci_low"], table["ci_high"]
    within = (low >= -margin) & (high <= margin)
    words = np.select([within, (low > 0) | (high < 0)], [EQUIVALENT, DIFFERENT], INCONCLUSIVE)
    return table.assign(verdict=words)
