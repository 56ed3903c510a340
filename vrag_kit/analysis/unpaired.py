"""The difference of two means over different queries, which may share clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.analysis.clusters import ClusterMean, cluster_mean
from vrag_kit.judging.scale import Scale

_STEPS = 40
_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 1 - 1e-6, 1 - 1e-9)
_SMALLEST = -15.0  # decimal exponent of the smallest p


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """The first mean minus the second, with the interval and p-value of one test.

    Queries are not paired. The interval combines those of the two means (`ClusterMean`): each end
    lies as far off as the root of the sum of their squared distances, minus what the means share
    through common clusters. The p-value is that of the narrowest such interval that excludes 0.

    Zou & Donner (2008), "Construction of confidence limits about effect measures: a
    general approach", Statistics in Medicine 27(10).
    """

    first: ClusterMean
    second: ClusterMean
    correlation: float  # of the two means; 0 where they share no cluster

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.first.value - self.second.value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval (low, high); NaN where one mean has no interval. It contains those of lower
        levels: where the interval of one mean ends at its scale, the combined one may shrink.
        """
        ends = [self._combined(each) for each in (*(x for x in _LEVELS if x < level), level)]
        low, high = np.array(ends).T
        return float(low.min()), float(high.max())

    def _combined(self, level: float) -> tuple[float, float]:
        low, high = self.first.interval(level)
        other_low, other_high = self.second.interval(level)
        below = self._joined(self.first.value - low, other_high - self.second.value)
        above = self._joined(high - self.first.value, self.second.value - other_low)
        return self.value - below, self.value + above

    def p_value(self) -> float:
        """Two-sided p-value of no difference; NaN where there is no interval."""
        if math.isnan(self.interval()[0]):
            return math.nan
        below, above = _SMALLEST, 0.0
        for _ in range(_STEPS):
            middle = (below + above) / 2
            low, high = self.interval(1 - 10**middle)
            if low > 0 or high < 0:
                above = middle
            else:
                below = middle
        return float(10**above)

    def _joined(self, one: float, other: float) -> float:
        shared = 2 * self.correlation * one * other
        return math.sqrt(max(0.0, one**2 + other**2 - shared))


def cluster_difference(
    values: np.ndarray, groups: pd.Series, first: np.ndarray, scale: Scale
) -> ClusterDifference:
    """The mean of the `values` where `first` is true minus that of the others, on `scale`, without
    NaN, at least one of either. `groups` names the cluster of each.
    """
    names = np.asarray(groups)
    one = cluster_mean(values[first], names[first], scale)
    other = cluster_mean(values[~first], names[~first], scale)
    spread = math.sqrt(one.variance * other.variance)
    if not spread > 0:  # NaN for one cluster
        return ClusterDifference(one, other, 0.0)
    added = _residuals(values[first], names[first])
    also_added = _residuals(values[~first], names[~first])
    covariance = float((added * also_added).sum())  # over clusters that are in both
    return ClusterDifference(one, other, covariance / spread)


def _residuals(values: np.ndarray, groups: np.ndarray) -> pd.Series:
    """What each cluster adds to the error of the mean; see `clustered_moments`."""
    clusters = pd.Series(values - values.mean()).groupby(groups)
    shares = clusters.size().to_numpy(float) / len(values)
    added: pd.Series = clusters.sum().div(np.sqrt(1 - shares) * len(values))
    return added
