"""Uncertainty of published means: the widest interval over queries, and intervals over published
runs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import CELL
from vrag_kit.papers.published import published

RUN_TABLES = (13, 15)
_SAME = 0.006  # two printed means are one: half a unit of the last digit, and a hair


def with_uncertainty(table: pd.DataFrame) -> pd.DataFrame:
    """Adds the intervals ci_low, ci_high (`with_binomial_interval`) and ci_low_runs, ci_high_runs
    to published answers, in percent: `with_uncertainty(published("visual_rag", 3))`.

    The latter are a t interval over the five runs of Tables 13 and 15, where the value is their
    mean: over other samples of images for the *same* queries. NaN elsewhere.
    """
    cells = table[CELL].merge(run_spreads(), on=CELL, how="left")
    fits = (cells["mean"] - table["value"].to_numpy()).abs() <= _SAME
    return with_binomial_interval(table).assign(
        ci_low_runs=(cells["mean"] - cells["half"]).where(fits).to_numpy(),
        ci_high_runs=(cells["mean"] + cells["half"]).where(fits).to_numpy(),
    )


def with_binomial_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Adds ci_low and ci_high, the widest interval of a mean in percent over n queries; NaN where
    the unit is another one, such as hit_count's.

    Clopper–Pearson interval, as if every query scored 0 or 1 (means of other scores vary less) and
    independently (queries on one species may not be independent; the paper publishes nothing on
    this).

    Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26(4).
    """
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    right = (table["value"] / 100 * table["n"]).where(table["unit"] == "percent")
    low, high = proportion_confint(right, table["n"], method="beta")
    return table.assign(ci_low=100 * low, ci_high=100 * high)


def run_spreads(tables: tuple[int, ...] = RUN_TABLES) -> pd.DataFrame:
    """Computes the spread of the paper's five runs from the runs themselves (Tables 13 and 15; for
    ROUGE 14 and 16): model, setting, k, mean in percent, std (ddof = 1), count, and half, half the
    width of the mean's 95 % t interval, in points.
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    cells = published("visual_rag", tables, statistic="run").groupby(CELL, sort=False)["value"]
    over = cells.agg(["mean", "std", "count"]).reset_index()
    half = stdtrit(over["count"] - 1, 0.975) * over["std"] / np.sqrt(over["count"])
    return over.assign(half=half)
