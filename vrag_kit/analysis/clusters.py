"""Means over clustered queries: their variance, and the interval and p-value of one test.

Queries of one group are correlated, so variances are estimated from whole groups. Interval and
p-value are of the same test, and cannot contradict each other: a value is outside of the 95 %
interval exactly when its p is below 0.05. The coverage of the interval is in
`tests/timing/coverage.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale

_ZERO = 1e-24  # a variance below this share of the squared width of a scale is rounding


@dataclass(frozen=True, slots=True)
class Moments:
    """Means of columns over queries, and their covariance estimated from clusters."""

    means: np.ndarray  # shape (columns,)
    covariance: np.ndarray  # of the means, shape (columns, columns); NaN for one cluster
    freedom: float  # Satterthwaite's degrees of freedom; NaN for one cluster
    clusters: int


def clustered_moments(
    values: np.ndarray,
    groups: Sequence[str] | np.ndarray | pd.Series,
    weights: np.ndarray | None = None,
) -> Moments:
    """Means and covariance of the columns of `values`, shape (queries, columns), without NaN, at
    least one row. `groups` names the cluster of each row, and `weights`, above 0, how many queries
    it stands for (None: one each).

    The covariance is CR2, which weighs the residual sum of a cluster with h of all rows
    by 1 / (1 − h); with one row a cluster it is that of HC2, and with clusters of one
    size n the usual one with clusters − 1. The degrees of freedom allow for
    clusters of different sizes.

    Bell & McCaffrey (2002), "Bias reduction in standard errors for linear regression
    with multi-stage samples", Survey Methodology 28(2).
    """
    clusters, member = np.unique(np.asarray(groups), return_inverse=True)
    columns = values.shape[1]
    each = np.ones(len(values)) if weights is None else weights
    rows, means = float(each.sum()), np.average(values, axis=0, weights=weights)
    if len(clusters) == 1:
        return Moments(means, np.full((columns, columns), np.nan), math.nan, 1)
    residuals = np.zeros((len(clusters), columns))
    np.add.at(residuals, member, each[:, None] * (values - means))
    sizes = np.bincount(member, weights=each)
    inflated = 1 / (1 - sizes / rows)
    covariance = (residuals.T * inflated) @ residuals / rows**2
    shared = inflated * sizes**2 / rows
    spread = (sizes**2).sum() + shared.sum() ** 2 - (shared**2).sum()
    return Moments(means, covariance, float(rows**2 / spread), len(clusters))


@dataclass(frozen=True, slots=True)
class ClusterMean:
    """A mean on a scale, with its interval and the p-value of any other mean.

    The test of a mean μ is Student's t of (mean − μ) / error(μ). As for a share (Wilson 1927, JASA
    22(158)), the error is that of the hypothesis: the estimated variance, times (μ − worst)(best −
    μ) / (mean − worst)(best − mean). So the interval stays on the scale, and is longer towards its
    middle.

    Where all clusters are equal there is no variance. Then the mean may be as far off as unseen
    clusters at an end of the scale allow: if their share is p, none is observed with the
    probability (1 − p)^clusters. At the ends this is the exact binomial interval of Clopper &
    Pearson (1934), Biometrika 26(4).

    The two rules do not agree away from the ends. Where all clusters are equal their spread is
    unknown, and the interval is wide; where one differs by a little, the estimated spread is as
    small, and the interval is narrow. So a wide interval of a mean without any spread means that
    the spread is unknown.
    """

    value: float
    variance: float  # NaN for one cluster
    freedom: float
    clusters: float
    scale: Scale

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval (low, high) on the scale; NaN for one cluster in which values differ."""
        from scipy.special import stdtrit  # quantiles of Student's t

        below, above = self.value - self.scale.worst, self.scale.best - self.value
        if self._same_size:
            unseen = 1 - ((1 - level) / 2) ** (1 / self.clusters)
            return self.value - unseen * below, self.value + unseen * above
        # (x − u)² ≤ c u (1 − u), with x and u as shares of the scale
        x = below / self.scale.width
        c = float(stdtrit(self.freedom, (1 + level) / 2)) ** 2 * self.variance / (below * above)
        middle, reach = x + c / 2, math.sqrt(c * x * (1 - x) + c * c / 4)
        low, high = (middle - reach) / (1 + c), (middle + reach) / (1 + c)
        return (
            self.scale.worst + self.scale.width * low,
            self.scale.worst + self.scale.width * high,
        )

    def p_value(self, mean: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean is `mean`, between the ends of the
        scale. NaN for one cluster in which values differ.
        """
        from scipy.special import stdtr

        off = mean - self.value
        end = self.scale.best if off > 0 else self.scale.worst
        if math.isnan(self.variance):
            return math.nan
        if off == 0:
            return 1.0
        if self._same_size:
            unseen = off / (end - self.value)
            return min(1.0, float(2 * (1 - unseen) ** self.clusters))
        below, above = self.value - self.scale.worst, self.scale.best - self.value
        allowed = (mean - self.scale.worst) * (self.scale.best - mean) / (below * above)
        t = abs(off) / math.sqrt(self.variance * allowed)
        return float(2 * stdtr(self.freedom, -t))

    @property
    def _same_size(self) -> bool:
        return self.variance <= _ZERO * self.scale.width**2


def cluster_mean(
    values: np.ndarray,
    groups: Sequence[str] | np.ndarray | pd.Series,
    scale: Scale,
    weights: np.ndarray | None = None,
) -> ClusterMean:
    """The mean of `values` on `scale`, without NaN, at least one, with `weights` as in
    `clustered_moments`. Raises `VragError` for values that are off the scale.
    """
    check_on_scale(values, scale)
    found = clustered_moments(values[:, None], groups, weights)
    alike = bool((values == values[0]).all())
    variance = 0.0 if alike else float(found.covariance[0, 0])
    mean = float(values[0]) if alike else float(found.means[0])
    return ClusterMean(mean, variance, found.freedom, found.clusters, scale)


def check_on_scale(values: np.ndarray, scale: Scale) -> None:
    """Raises `VragError` for values, at least one, that are off the scale."""
    low, high = values.min(), values.max()
    slack = 1e-9 * scale.width
    if low < scale.worst - slack or high > scale.best + slack:
        raise VragError(
            f"values from {low:g} to {high:g} are off their scale, from {scale.worst:g} to"
            f" {scale.best:g}; name its ends in the columns score_min and score_max, or as `scale`."
        )
