"""Post-stratified means: each part of the questions is weighted by a given share, whatever the
number of its questions.

Epidemiology calls it direct standardisation, survey statistics a stratified mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.analysis.clusters import ClusterMean, check_on_scale
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale


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
