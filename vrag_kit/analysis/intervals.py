"""Means that travel with their n and an interval; the unit is the query, the cluster
its group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from vrag_kit.errors import VragError

RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and what is known about it."""

    value: float  # NaN when n is 0
    ci_low: float  # 95 % by default; NaN when it cannot be told
    ci_high: float
    n: int  # queries in the mean
    n_failed: int  # queries without a value: left out of the mean, never counted as 0


def estimate(
    values: Sequence[float] | np.ndarray,
    groups: Sequence[str],
    *,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Mean of `values` (NaN: no value) with a percentile bootstrap interval over
    `groups`.

    Whole groups are drawn with replacement, 4,000 times, so queries of one species stay
    together. When all values are 0, or all 1, a bootstrap knows no doubt: the interval
    is then the exact binomial one (Clopper-Pearson) with one trial a group. For one
    group only, or one repeated value between 0 and 1, the interval is NaN. Raises
    `VragError` when the lengths differ.
    """
    values, names = np.asarray(values, dtype=float), np.asarray(groups)
    if len(values) != len(names):
        raise VragError(
            f"{len(values)} values but {len(names)} groups; expected one group a value."
        )
    known = np.isfinite(values)
    failed, values = int((~known).sum()), values[known]
    clusters, member = np.unique(names[known], return_inverse=True)
    if len(values) == 0:
        return Estimate(np.nan, np.nan, np.nan, 0, failed)
    mean = float(values.mean())
    if (values == values[0]).all():
        low, high = (
            (
                float(x)
                for x in proportion_confint(
                    mean * len(clusters), len(clusters), alpha=1 - level, method="beta"
                )
            )
            if mean in (0.0, 1.0)
            else (np.nan, np.nan)
        )
        return Estimate(mean, low, high, len(values), failed)
    if len(clusters) == 1:
        return Estimate(mean, np.nan, np.nan, len(values), failed)
    sums, sizes = np.bincount(member, weights=values), np.bincount(member)
    times = resampled_times(len(clusters), seed)
    low, high = np.quantile(times @ sums / (times @ sizes), [(1 - level) / 2, (1 + level) / 2])
    return Estimate(mean, float(low), float(high), len(values), failed)


def resampled_times(n_groups: int, seed: int, resamples: int = RESAMPLES) -> np.ndarray:
    """How often each group is drawn when as many are drawn with replacement, shape
    (resamples, groups).
    """
    return np.random.default_rng(seed).multinomial(
        n_groups, np.full(n_groups, 1 / n_groups), size=resamples
    )


def summarise(
    per_query: pd.DataFrame, groups: Mapping[str, str], by: Sequence[str], *, seed: int = 0
) -> pd.DataFrame:
    """One `estimate` for each combination of the columns `by`: those columns, value,
    ci_low, ci_high, n, n_failed.

    `per_query` has the columns query_id and value; `groups` maps query_id to its
    cluster. The order of first appearance is kept.
    """
    rows = []
    for key, part in per_query.groupby(list(by), sort=False, dropna=False):
        result = estimate(
            part["value"].to_numpy(), [groups[query_id] for query_id in part["query_id"]], seed=seed
        )
        rows.append((*key, result.value, result.ci_low, result.ci_high, result.n, result.n_failed))
    return pd.DataFrame(rows, columns=[*by, "value", "ci_low", "ci_high", "n", "n_failed"])
