"""Shares as percent, as papers print them."""

from __future__ import annotations

import numpy as np
import pandas as pd

_SHARES = ("value", "ci_low", "ci_high", "std", "if_all_wrong", "if_all_right", "if_refusals_wrong")


def in_percent(results: pd.DataFrame) -> pd.DataFrame:
    """Shares in [0, 1] as percent, as the papers print them; hit_count stays a number
    of images. A column `unit` says which.
    """
    counts = results["metric"] == "hit_count"
    scaled = {
        column: results[column] * np.where(counts, 1.0, 100.0)
        for column in _SHARES
        if column in results
    }
    return results.assign(**scaled, unit=np.where(counts, "images", "percent"))
