"""Differences between arms, paired over queries, with intervals over clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import ClusterMean, cluster_errors, table_mean
from vrag_kit.analysis.means import per_query as judged_per_query
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale, require_columns, scale_of

_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 1 - 1e-6, 1 - 1e-9)
_SMALLEST = -15.0  # decimal logarithm of the smallest p


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
        from scipy.optimize import brentq

        def distance(log_p: float) -> float:
            low, high = self.interval(1 - 10**log_p)
            return max(low, -high)  # of the interval from 0; below 0 where it contains 0

        if math.isnan(self.interval()[0]):
            return math.nan
        if distance(0.0) <= 0:
            return 1.0
        if distance(_SMALLEST) > 0:
            return float(10**_SMALLEST)
        return float(10 ** brentq(distance, _SMALLEST, 0.0))

    def _joined(self, one: float, other: float) -> float:
        shared = 2 * self.correlation * one * other
        return math.sqrt(max(0.0, one**2 + other**2 - shared))


def cluster_difference(
    values: np.ndarray, groups: pd.Series, first: np.ndarray, scale: Scale
) -> ClusterDifference:
    """The mean of the `values` where `first` is true minus that of the others, on `scale`, without
    NaN, at least one of either. `groups` names the cluster of each.
    """
    table = pd.DataFrame({"value": values, "group": groups.to_numpy()})
    sides = (table[first], table[~first])
    one, other = (table_mean(side, scale) for side in sides)
    spread = math.sqrt(one.variance * other.variance)
    if not spread > 0:  # NaN for one cluster
        return ClusterDifference(one, other, 0.0)
    errors, also = (cluster_errors(side["value"], side["group"]) for side in sides)
    return ClusterDifference(one, other, float((errors * also).sum()) / spread)


REPEATS = ("model", "retriever", "k", "ks", "m")
"""Columns whose values repeat a comparison, with another model or with more images."""


def paired_differences(
    per_query: pd.DataFrame,
    *,
    arm: str,
    by: Sequence[str],
    baseline: Hashable,
    repeats: Sequence[str] = REPEATS,
    weights: pd.Series | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Difference of every arm from `baseline`, paired over the queries that both have: arm, `by`,
    value, ci_low, ci_high, n, n_failed, p, baseline, p_holm.

    n counts queries with a value in both arms, n_failed those of both arms that lack a value in one
    of them; where all failed, n = 0 and the numbers are NaN. Interval and p are of one test over
    groups (`ClusterMean`): an interval of `level` excludes 0 exactly where p is below 1 − `level`.

    p_holm corrects p within one family: the rows that differ only in `repeats`, that is all models
    and all k of one arm against `baseline`, in one setting and in one stratum. The pooled stratum
    is a family of its own. So a comparison has one p_holm, whatever else its table compares.

    With `weights`, as in `table_mean`, means and tests are of the post-stratified mean.

    Where all groups have the same difference, the interval allows for unseen groups, exactly.
    Interval and p are NaN for a single group whose
    differences vary. Columns needed in `per_query`: query_id, group, value, `arm` and `by`, and
    score_min and score_max where the values are on another scale than [0, 1]. Judged answers, with
    a column score instead of value, are averaged by `per_query` first. A baseline that has no k in
    common with any other arm, such as zero-shot, is compared at every k. Raises `VragError` when
    `baseline` has no rows; an empty table has no result.
    """
    if "value" not in per_query:
        per_query = judged_per_query(per_query, by=[arm, *by])
    if "k" in by and not _same_k(per_query, per_query[arm] == baseline):
        per_query = broadcast_baseline(per_query, arm=arm, baseline=baseline)
    require_columns(per_query, ["query_id", "group", "value"], "paired_differences")
    arms = list(per_query[arm].unique())
    if arms and baseline not in arms:
        known = ", ".join(map(str, arms))
        raise VragError(f"paired_differences: {arm} {baseline!r} was not asked; found {known}.")
    scales = {key: scale_of(part).differences for key, part in per_query.groupby(list(by))}
    parts = [] if weights is None else [weights.index.name]
    keys = list(dict.fromkeys([*by, *parts, "query_id", "group"]))
    means = per_query.groupby([arm, *keys], sort=False)["value"].mean().reset_index()
    of_baseline = means[arm] == baseline
    start = means[of_baseline].drop(columns=arm).rename(columns={"value": "start"})
    pairs = means[~of_baseline].merge(start, on=keys)
    pairs["value"] -= pairs["start"]
    rows = []
    for name in arms:
        for key, part in pairs[pairs[arm] == name].groupby(list(by), sort=False):
            found, n = table_mean(part, scales[key], weights), part["value"].count()
            numbers = (found.value, *found.interval(level), n, len(part) - n, found.p_value())
            rows.append((name, *key, *numbers, baseline))
    columns = ["value", "ci_low", "ci_high", "n", "n_failed", "p", "baseline"]
    table = pd.DataFrame(rows, columns=[arm, *by, *columns])
    asking = [column for column in (arm, *by) if column not in repeats]
    return table.assign(p_holm=holm_by_family(table, asking))


def _same_k(per_query: pd.DataFrame, of_baseline: pd.Series) -> bool:
    """Whether the baseline has a k in common with another arm, or there is no other."""
    others = per_query.loc[~of_baseline, "k"]
    return others.empty or bool(others.isin(per_query.loc[of_baseline, "k"]).any())


def holm_by_family(table: pd.DataFrame, asking: Sequence[str]) -> pd.Series:
    """Holm's correction of the column p within each family, the rows that share the values of the
    columns `asking`.
    """
    families = table.groupby(list(asking) or np.zeros(len(table)), sort=False)["p"]
    return families.transform(lambda p: holm(p.to_numpy(float)))


def broadcast_baseline(
    per_query: pd.DataFrame, *, arm: str, baseline: Hashable, over: Sequence[str] = ("k",)
) -> pd.DataFrame:
    """Repeats the rows of `baseline` at each value of `over` that another arm has.
    `paired_differences` then compares an arm without k (zero-shot) at every k.
    """
    alone = per_query[arm] == baseline
    others = per_query[~alone]
    places = others[list(over)].drop_duplicates()
    repeated = per_query[alone].drop(columns=list(over)).merge(places, how="cross")
    return pd.concat([others, repeated], ignore_index=True)


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction of p-values: the i-th smallest of m times (m − i + 1), at least
    as large as those before it, at most 1. NaN stays NaN, and is not counted.

    Holm (1979), Scandinavian Journal of Statistics 6(2).
    """
    from statsmodels.stats.multitest import multipletests

    known, corrected = np.isfinite(p), np.full(len(p), np.nan)
    if known.any():
        corrected[known] = multipletests(p[known], method="holm")[1]
    return corrected
