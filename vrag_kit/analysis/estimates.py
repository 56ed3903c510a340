"""Means with their n and an interval; the unit is the query, the cluster its group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.scale import SHARES, Scale, require_columns, scale_of

_ZERO = 1e-24  # a variance below this share of the squared width of a scale is rounding
_TINY = 1e-12  # resamples that differ by less agree
RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Moments:
    """Means of columns over queries, and their covariance estimated from clusters."""

    means: np.ndarray  # shape (columns,)
    covariance: np.ndarray  # of the means, shape (columns, columns); NaN for one cluster
    freedom: float  # Satterthwaite's degrees of freedom; NaN for one cluster
    clusters: float  # as the thinnest part would have in a sample that is mixed like the shares


def clustered_moments(
    values: np.ndarray,
    groups: Sequence[str] | np.ndarray | pd.Series,
    weights: np.ndarray | None = None,
    parts: np.ndarray | None = None,
    shares: np.ndarray | None = None,
) -> Moments:
    """Means and covariance of the columns of `values`, shape (queries, columns), without NaN, at
    least one row. `groups` names the cluster of each row, and `weights`, above 0, how many queries
    it stands for (None: one each). In a post-stratified mean `parts` gives the part of each row, an
    index into `shares`, which add up to 1; each part has a row. The mean is then Σ share · mean of
    the part.

    The covariance is CR2 of the regression on parts: with h the share of a cluster in a part, its
    residual sum counts 1 / √(1 − h) fold. Without parts and with one row a cluster it is that of
    HC2; with clusters of one size the usual one with clusters − 1; with parts and one row a cluster
    Σ share² · variance / n. The degrees of freedom, tr(G)² / tr(G²) of the paper's matrix G, allow
    for clusters of different sizes. A part of a single cluster does not show its spread: it counts
    by its distance from the whole mean instead.

    Bell & McCaffrey (2002), "Bias reduction in standard errors for linear regression
    with multi-stage samples", Survey Methodology 28(2).
    """
    clusters, member = np.unique(np.asarray(groups), return_inverse=True)
    each = np.ones(len(values)) if weights is None else weights
    part = np.zeros(len(values), int) if parts is None else parts
    share = np.ones(1) if shares is None else shares
    counts = np.zeros((len(clusters), len(share)))
    np.add.at(counts, (member, part), each)
    n = counts.sum(axis=0)
    of_parts = np.zeros((len(share), values.shape[1]))
    np.add.at(of_parts, part, each[:, None] * values)
    of_parts /= n[:, None]
    means = share @ of_parts
    if len(clusters) == 1:
        return Moments(means, np.full((len(means), len(means)), np.nan), math.nan, 1)
    present = (counts > 0).sum(axis=0)
    single = present == 1
    residuals = np.zeros((*counts.shape, len(means)))
    centre = np.where(single[:, None], means, of_parts)
    np.add.at(residuals, (member, part), each[:, None] * (values - centre[part]))
    inflated = 1 / np.sqrt(1 - np.where(single, 0.0, counts / n))
    errors = np.einsum("cp,cpv->cv", inflated * share / n, residuals)
    own = counts @ (share / n) ** 2
    reach = counts * np.where(single, 0.0, inflated) * share / n
    shared = ((reach.T @ reach) ** 2 / np.outer(n, n)).sum()
    of_own = ((reach**2 @ (1 / n)) ** 2).sum()
    freedom = float(own.sum() ** 2 / ((own**2).sum() + shared - of_own))
    thinnest = min(len(clusters), float((present / share).min()))
    return Moments(means, errors.T @ errors, freedom, thinnest)


def cluster_errors(values: pd.Series, groups: pd.Series) -> pd.Series:
    """What each cluster adds to the error of the mean of `values`, at least one and without NaN, by
    the name of the cluster; the squares add up to the variance of `clustered_moments`. 0 for a
    single cluster, which does not show its spread.
    """
    clusters = (values - values.mean()).groupby(groups.to_numpy())
    shares = clusters.size() / len(values)
    spread = np.sqrt(1 - shares.where(shares < 1, 0.0)) * len(values)
    errors: pd.Series = clusters.sum().div(spread)
    return errors


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
        return SHARES.rescale(self.scale, low), SHARES.rescale(self.scale, high)

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
    *,
    parts: np.ndarray | None = None,
    shares: np.ndarray | None = None,
) -> ClusterMean:
    """The mean of `values` on `scale`, without NaN, with the rest as in `clustered_moments`; NaN
    without values. Raises `VragError` for values that are off the scale.
    """
    if not len(values):
        return ClusterMean(math.nan, math.nan, math.nan, 0, scale)
    low, high = values.min(), values.max()
    slack = 1e-9 * scale.width
    if low < scale.worst - slack or high > scale.best + slack:
        raise VragError(
            f"values from {low:g} to {high:g} are off their scale, from {scale.worst:g} to"
            f" {scale.best:g}; name its ends in the columns score_min and score_max, or as `scale`."
        )
    found = clustered_moments(values[:, None], groups, weights, parts, shares)
    alike = bool(low == high)
    variance = 0.0 if alike else float(found.covariance[0, 0])
    mean = float(low if alike else found.means[0])
    return ClusterMean(mean, variance, found.freedom, found.clusters, scale)


def table_mean(
    per_query: pd.DataFrame, scale: Scale, weights: pd.Series | None = None
) -> ClusterMean:
    """The mean of the column value of `per_query` on `scale`, over the rows that have one, with
    clusters in the column group; NaN without any.

    With `weights` the mean is post-stratified: the index of `weights` names the parts of the
    questions, the name of that index their column in `per_query`, and its values, above 0, are the
    shares of the parts or their numbers of questions, as `value_counts` returns them. Shares are
    normalised over the parts of the table. The weight of a missing value goes to the rest of its
    part; a part without any value makes the mean NaN. Raises `VragError` for a part that has no
    share, and for values off the scale.
    """
    known = per_query.dropna(subset="value")
    parts = shares = None
    if weights is not None:
        column = per_query[weights.index.name]
        of_parts = weights.reindex(column.unique())
        if odd := [part for part, share in of_parts.items() if not share > 0]:
            found = ", ".join(map(str, weights.index))
            raise VragError(f"{column.name} {odd[0]!r} has no share in the weights of {found}.")
        parts = of_parts.index.get_indexer(pd.Index(known[column.name]))
        shares = (of_parts / of_parts.sum()).to_numpy()
        if len(np.unique(parts)) < len(shares):
            known = known[:0]
    values = known["value"].to_numpy(float)
    return cluster_mean(values, known["group"], scale, parts=parts, shares=shares)


class Estimate(NamedTuple):
    """A mean with its interval and its counts."""

    value: float  # NaN when n is 0
    ci_low: float  # 95 % by default; NaN when it cannot be told
    ci_high: float
    n: int  # queries in the mean
    n_failed: int  # queries without a value: left out of the mean, never counted as 0


def estimate(
    values: Sequence[float] | np.ndarray | pd.Series,
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
    `VragError` for values that are off the scale.
    """
    every, names = np.asarray(values, dtype=float), np.asarray(groups)
    known = np.isfinite(every)
    counted = None if weights is None else weights[known]
    found = cluster_mean(every[known], names[known], scale, counted)
    return Estimate(found.value, *found.interval(level), int(known.sum()), int((~known).sum()))


def cluster_bootstrap(
    counts: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> tuple[float, float, float]:
    """A statistic of counts, and its 95 % percentile interval over resamples of whole clusters:
    (value, low, high).

    `counts`, of shape (clusters, cells), are those of each cluster, at least one. `statistic` gets
    the sums of each resample, of shape (resamples, cells), and returns one number for each.
    Resamples without a value (NaN) are left out. The interval is NaN where none has a value, and
    where all have the same: a bootstrap of perfect agreement has no variance. The draws depend on
    `seed` and the number of clusters alone.
    """
    clusters = len(counts)
    shares = np.full(clusters, 1 / clusters)
    times = np.random.default_rng(seed).multinomial(clusters, shares, resamples)
    (value,) = statistic(counts.sum(axis=0, keepdims=True))
    drawn = statistic(times @ counts)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) == 0 or np.ptp(drawn) < _TINY:
        return float(value), math.nan, math.nan
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(value), float(low), float(high)


def cluster_means(
    per_query: pd.DataFrame, by: Sequence[str], *, weights: pd.Series | None = None
) -> pd.DataFrame:
    """One mean for each combination of the columns `by`: those columns, value, ci_low, ci_high, n,
    n_failed. With `weights`, as in `table_mean`, it is post-stratified.

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
        known = part.dropna(subset="value")
        found = table_mean(part, scale_of(part), weights)
        low, high = found.interval()
        limited = "attainable" in part and (known["attainable"] < known["score_max"]).any()
        if weights is None and limited:
            low, high = _interval_of_attainable(known)
        rows.append((*key, found.value, low, high, len(known), len(part) - len(known)))
    return pd.DataFrame(rows, columns=[*by, "value", "ci_low", "ci_high", "n", "n_failed"])


def _interval_of_attainable(known: pd.DataFrame) -> tuple[float, float]:
    """The interval of the mean of values between 0 and the largest that each query allows."""
    attainable = known["attainable"].to_numpy(float)
    shares = known["value"].to_numpy(float) / attainable
    low, high = cluster_mean(shares, known["group"], SHARES, attainable).interval()
    top = float(attainable.mean())
    return top * low, top * high
