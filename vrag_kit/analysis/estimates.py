"""Means with their n and an interval; the unit is the query, the cluster its group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.analysis.clusters import cluster_mean
from vrag_kit.analysis.weights import PoststratificationWeights
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.tables import require_columns

RESAMPLES = 4000
BLOCK = 2**22
"""The most random numbers in memory at once: 32 MiB."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval and its counts."""

    value: float  # NaN when n is 0
    ci_low: float  # 95 % by default; NaN when it cannot be told
    ci_high: float
    n: int  # queries in the mean
    n_failed: int  # queries without a value: left out of the mean, never counted as 0


def estimate(
    values: Sequence[float] | np.ndarray,
    groups: Sequence[str] | np.ndarray | pd.Series,
    *,
    level: float = 0.95,
    scale: Scale = SHARES,
    weights: np.ndarray | None = None,
) -> Estimate:
    """Mean of `values` (NaN: no value) on `scale`, with an interval over `groups`. With `weights`,
    above 0, each value stands for that many.

    The interval is `ClusterMean`'s, whose test `paired_differences` uses too. Where all groups are
    equal it allows for unseen groups, exactly; for one group whose values differ it is NaN. Raises
    `VragError` when the lengths differ, and for values that are off the scale.
    """
    everything, names = np.asarray(values, dtype=float), np.asarray(groups)
    if len(everything) != len(names):
        raise VragError(
            f"{len(everything)} values but {len(names)} groups; expected one group a value."
        )
    known = np.isfinite(everything)
    failed, given = int((~known).sum()), everything[known]
    if len(given) == 0:
        return Estimate(np.nan, np.nan, np.nan, 0, failed)
    found = cluster_mean(given, names[known], scale, None if weights is None else weights[known])
    low, high = found.interval(level)
    return Estimate(found.value, low, high, len(given), failed)


def bootstrap_counts(n_groups: int, seed: int, resamples: int = RESAMPLES) -> Iterator[np.ndarray]:
    """Draws bootstrap resamples: how often each group is drawn, in blocks of shape (resamples,
    groups) that together have `resamples` rows.

    The draws do not depend on the size of the blocks, which memory bounds.
    """
    stream, shares = np.random.default_rng(seed), np.full(n_groups, 1 / n_groups)
    for rows in block_sizes(resamples, n_groups):
        yield stream.multinomial(n_groups, shares, size=rows)


def block_sizes(rows: int, columns: int) -> Iterator[int]:
    """The sizes of blocks of `rows` rows of `columns` numbers that fit in memory, in order."""
    most = max(1, BLOCK // max(1, columns))
    for start in range(0, rows, most):
        yield min(most, rows - start)


def cluster_means(
    per_query: pd.DataFrame, by: Sequence[str], *, weights: PoststratificationWeights | None = None
) -> pd.DataFrame:
    """One `estimate` for each combination of the columns `by`: those columns, value, ci_low,
    ci_high, n, n_failed. With `weights` it is the weighted mean.

    `per_query` has the columns value and group (the cluster), and score_min and score_max where the
    values are on another scale than [0, 1], which may differ from row to row of the result. A
    column attainable gives the largest value that a query allows, as with fewer relevant documents
    than k. Where it is below the best for some, the interval of an unweighted mean is that of the
    share of attainable, weighted by attainable, times its mean, which it cannot exceed. The order
    of first appearance is kept.
    """
    require_columns(per_query, ["group", "value"], "cluster_means")
    rows = []
    for key, part in per_query.groupby(list(by), sort=False, dropna=False):
        result = _estimate(part, weights)
        rows.append((*key, result.value, result.ci_low, result.ci_high, result.n, result.n_failed))
    return pd.DataFrame(rows, columns=[*by, "value", "ci_low", "ci_high", "n", "n_failed"])


def _of_attainable(known: pd.DataFrame, n_failed: int) -> Estimate:
    """The mean of values between 0 and the largest that each query allows."""
    values, attainable = known["value"].to_numpy(float), known["attainable"].to_numpy(float)
    share = cluster_mean(values / attainable, known["group"], SHARES, attainable)
    low, high = share.interval()
    top = float(attainable.mean())
    return Estimate(float(values.mean()), top * low, top * high, len(known), n_failed)


def _estimate(part: pd.DataFrame, weights: PoststratificationWeights | None) -> Estimate:
    """The mean of the rows, plain or mixed."""
    scale = scale_of(part)
    known = part[part["value"].notna()]
    limited = "attainable" in part and (known["attainable"] < known["score_max"]).any()
    if weights is None and limited:
        return _of_attainable(known, len(part) - len(known))
    if weights is None:
        return estimate(part["value"].to_numpy(), part["group"], scale=scale)
    n_failed = int(part["value"].isna().sum())
    found = weights.mean(part, scale)
    return Estimate(found.value, *found.interval(), len(part) - n_failed, n_failed)
