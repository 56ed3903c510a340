"""Shares as percent, as papers print them."""

from __future__ import annotations

import numpy as np
import pandas as pd

_SHARES = (
    *("value", "ci_low", "ci_high", "std", "if_all_wrong", "if_all_right", "if_refusals_wrong"),
    *("value_a", "ci_low_a", "ci_high_a", "value_b", "ci_low_b", "ci_high_b", "smallest"),
    *("if_neutral", "if_entailed"),
)


_COUNTS = {"hit_count": "images", "successful_turns": "turns"}
"""Metrics that are numbers of something, and of what."""


def in_percent(results: pd.DataFrame) -> pd.DataFrame:
    """Shares in [0, 1] as percent, and scores in [−1, 1] accordingly, as the papers print
    them; hit_count stays a number of images, successful_turns one of turns. A column
    `unit` says which.
    """
    units = results["metric"].map(_COUNTS).fillna("percent")
    factor = np.where(units == "percent", 100.0, 1.0)
    scaled = {column: results[column] * factor for column in _SHARES if column in results}
    return results.assign(**scaled, unit=units)
