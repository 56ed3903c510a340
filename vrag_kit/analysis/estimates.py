"""Means with their n and an interval; the unit is the query, the cluster its group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.tables import require_columns

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


@dataclass(frozen=True, slots=True)
class PoststratificationWeights:
    """Weights of a post-stratified mean: the share of each part of the questions."""

    column: str
    """The column of the table with a question's part."""
    shares: Mapping[str, float]
    """Part → its share, above 0. Shares are normalised over the parts of a table, so they may be
    numbers of questions.
    """

    def mean(self, rows: pd.DataFrame, scale: Scale) -> ClusterMean:
        """The weighted mean Σ share · mean of the part, of the column value of `rows` (NaN: no
        value), with clusters in the column group.

        The weight of a missing value goes to the rest of its part; a part without any value makes
        the mean NaN. Raises `VragError` for a part that has no share, and for values off the scale.
        """
        shares = self._of(rows)
        known = rows.dropna(subset="value")
        if known.empty or set(known[self.column]) != set(shares.index):
            return ClusterMean(math.nan, math.nan, math.nan, 0, scale)
        values = known["value"].to_numpy(float)
        check_on_scale(values, scale)
        part = shares.index.get_indexer(pd.Index(known[self.column]))
        cluster = np.unique(known["group"].to_numpy(), return_inverse=True)[1]
        return _stratified(values, part, cluster, shares.to_numpy(), scale)

    def _of(self, rows: pd.DataFrame) -> pd.Series:
        """The share of each part in `rows`, adding up to 1."""
        parts = list(rows[self.column].unique())
        if odd := [part for part in parts if not self.shares.get(part, 0) > 0]:
            raise VragError(
                f"the part {odd[0]!r} in the column {self.column!r} has no share in the mix;"
                f" expected {', '.join(self.shares)}."
            )
        shares = pd.Series([self.shares[part] for part in parts], parts, dtype=float)
        return shares / shares.sum()


def _stratified(
    values: np.ndarray, part: np.ndarray, cluster: np.ndarray, shares: np.ndarray, scale: Scale
) -> ClusterMean:
    """The mean with the variance of its sums by cluster: CR2 and Satterthwaite's degrees of freedom
    as in `clustered_moments`, for the regression on parts; with one row a cluster it is Σ share² ·
    variance / n, as of any stratified sample.

    A part of a single cluster does not show its spread: it counts by its distance from
    the whole mean instead. Where no value differs within a part, as many clusters
    count as its thinnest part would have in a sample that is mixed like `shares`: no
    other way to hide what was not seen leaves more unseen.
    """
    counts = np.zeros((cluster.max() + 1, len(shares)))
    np.add.at(counts, (cluster, part), 1.0)
    n = counts.sum(axis=0)
    means = np.bincount(part, values, len(shares)) / n
    mean = float(shares @ means)
    lonely = (counts > 0).sum(axis=0) == 1
    centre = np.where(lonely, mean, means)
    sums = np.zeros_like(counts)
    np.add.at(sums, (cluster, part), values - centre[part])
    inflated = 1 / np.sqrt(1 - np.where(lonely, 0.0, counts / n))
    variance = float((((sums * inflated) @ (shares / n)) ** 2).sum())
    if len(counts) == 1 and (values != values[0]).any():
        variance = math.nan
    thinnest = float(((counts > 0).sum(axis=0) / shares).min())
    clusters = min(len(counts), thinnest)
    freedom = _freedom(counts, shares, np.where(lonely, 0.0, inflated))
    return ClusterMean(mean, variance, freedom, clusters, scale)


def _freedom(counts: np.ndarray, shares: np.ndarray, inflated: np.ndarray) -> float:
    """tr(G)² / tr(G²) of the matrix G of Bell & McCaffrey, clusters × clusters."""
    n = counts.sum(axis=0)
    own = counts @ (shares / n) ** 2
    reach = counts * inflated * shares / n
    shared = ((reach.T @ reach) ** 2 / np.outer(n, n)).sum()
    of_own = ((reach**2 @ (1 / n)) ** 2).sum()
    return float(own.sum() ** 2 / ((own**2).sum() + shared - of_own))


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
