"""Converts shares to percent, as papers report them."""

from __future__ import annotations

import numpy as np
import pandas as pd

_SHARES = (
    *("value", "ci_low", "ci_high", "std", "bound_low", "bound_high", "if_refusals_incorrect"),
    *("value_a", "ci_low_a", "ci_high_a", "value_b", "ci_low_b", "ci_high_b", "mde"),
    *("if_neutral", "if_entailed"),
)


_COUNTS = {"hit_count": "images", "successful_turns": "turns"}
"""Metrics that are counts → their unit."""


def to_percent(results: pd.DataFrame) -> pd.DataFrame:
    """Converts shares in [0, 1], and scores in [−1, 1], to percent, as papers report them.
    hit_count stays a number of images, successful_turns one of turns. A column `unit` gives the
    unit.
    """
    units = results["metric"].map(_COUNTS).fillna("percent")
    factor = np.where(units == "percent", 100.0, 1.0)
    scaled = {column: results[column] * factor for column in _SHARES if column in results}
    return results.assign(**scaled, unit=units)
