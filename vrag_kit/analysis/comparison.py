"""Differences between arms, paired over queries, with clusters kept together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.clusters import cluster_mean
from vrag_kit.analysis.mix import Mix
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import Scale, scale_of

REPEATS = ("model", "retriever", "k", "ks", "m")
"""The columns whose values ask one question again: of another model, with more images."""


def compare(
    per_query: pd.DataFrame,
    *,
    arm: str,
    by: Sequence[str],
    baseline: Hashable,
    repeats: Sequence[str] = REPEATS,
    mix: Mix | None = None,
) -> pd.DataFrame:
    """Difference of every arm to `baseline` on the queries that both have: arm, `by`,
    value, ci_low, ci_high, n, n_failed, p, baseline, p_holm.

    n counts queries with a value in both arms, n_failed those that both were asked and
    that have none in one of them; where all failed, n = 0 and the numbers are NaN.
    Interval and p are of one test over groups (`ClusterMean`): 0 is outside of the 95 %
    interval exactly where p is below 0.05.

    p_holm corrects p within one question: the rows that differ in nothing but
    `repeats`, that is all models and all k of one arm against `baseline`, in one
    setting and in one stratum. The pooled stratum is a family of its own. So a
    comparison has one p_holm, whatever else its table compares.

    With a `mix`, whose column `per_query` has, means and tests are of its mean.

    Where all groups differ alike, or not at all, the interval tells what as many may
    leave unseen. Interval and p are NaN for one group whose queries differ otherwise.
    Columns needed in `per_query`: query_id, group, value, `arm` and `by`, and worst and
    best where the values are on another scale than [0, 1]. Raises `VragError` when
    `baseline` was not asked; without rows there are none.
    """
    require_columns(per_query, ["query_id", "group", "value"], "compare")
    arms = _arms(per_query, arm, baseline)
    scales = {key: scale_of(part).differences for key, part in per_query.groupby(list(by))}
    parts = [mix.column] if mix else []
    keys = list(dict.fromkeys([*by, *parts, "query_id", "group"]))
    means = per_query.groupby([arm, *keys], sort=False)["value"].mean().reset_index()
    of_baseline = means[arm] == baseline
    start = means[of_baseline].drop(columns=arm).rename(columns={"value": "start"})
    pairs = means[~of_baseline].merge(start, on=keys)
    pairs = pairs.assign(difference=pairs["value"] - pairs["start"])
    rows = []
    for name in arms:
        for key, part in pairs[pairs[arm] == name].groupby(list(by), sort=False):
            rows.append((name, *key, *_difference(part, scales[key], mix), baseline))
    numbers = ["value", "ci_low", "ci_high", "n", "n_failed", "p"]
    table = pd.DataFrame(rows, columns=[arm, *by, *numbers, "baseline"])
    asking = [column for column in (arm, *by) if column not in repeats]
    return table.assign(p_holm=by_question(table, asking))


def _arms(per_query: pd.DataFrame, arm: str, baseline: Hashable) -> list[Hashable]:
    """The arms that were asked, in order; raises `VragError` when `baseline` is none."""
    arms = list(per_query[arm].unique())
    if arms and baseline not in arms:
        raise VragError(
            f"compare: {baseline!r} was not asked, so nothing can be compared with it; found"
            f" {', '.join(map(str, arms))} in the column {arm!r}. Name one of these as `baseline`."
        )
    return arms


def _difference(pairs: pd.DataFrame, scale: Scale, mix: Mix | None) -> tuple[float, ...]:
    """value, ci_low, ci_high, n, n_failed and p of one comparison."""
    both = pairs.dropna(subset="difference")
    failed = len(pairs) - len(both)
    if both.empty:
        return math.nan, math.nan, math.nan, 0, failed, math.nan
    if mix:
        found = mix.mean(pairs.assign(value=pairs["difference"]), scale)
    else:
        found = cluster_mean(both["difference"].to_numpy(float), both["group"], scale)
    return found.value, *found.interval(), len(both), failed, found.p()


def by_question(table: pd.DataFrame, asking: Sequence[str]) -> pd.Series:
    """Holm's correction of the column p within the rows that share what asks their
    question, the columns `asking`.
    """
    if not asking:
        return pd.Series(holm(table["p"].to_numpy(float)), table.index)
    families = table.groupby(list(asking), sort=False)["p"]
    return families.transform(lambda p: holm(p.to_numpy(float)))


def beside_each(
    per_query: pd.DataFrame, *, arm: str, baseline: Hashable, over: Sequence[str] = ("k",)
) -> pd.DataFrame:
    """The rows of `per_query`, with those of `baseline` again at each value of `over`
    that another arm has: so that `compare` sets what has no k (zero-shot) beside every k.
    """
    alone = per_query[arm] == baseline
    others = per_query[~alone]
    places = others[list(over)].drop_duplicates()
    repeated = per_query[alone].drop(columns=list(over)).merge(places, how="cross")
    return pd.concat([others, repeated], ignore_index=True)


def since_smallest_k(per_query: pd.DataFrame) -> pd.DataFrame:
    """Each value less that of the same query at the smallest k of its model and setting,
    without that k; worst and best are those of differences. So `compare(…, arm="model")`
    tells whether one model loses more over k than another.
    """
    require_columns(per_query, ["query_id", "value"], "since_smallest_k")
    arms = per_query.groupby(["model", "setting"], sort=False)["k"]
    first = per_query["k"] == arms.transform("min")
    same = ["model", "setting", "query_id"]
    start = per_query[first].set_index(same)["value"].rename("start")
    later = per_query[~first].join(start, on=same)
    ends = scale_of(per_query).differences
    changed = later.assign(value=later["value"] - later["start"], worst=ends.worst, best=ends.best)
    return changed.drop(columns="start")


def holm(p: np.ndarray) -> np.ndarray:
    """The p-values corrected for their number, step down: the i-th smallest of m times
    (m − i + 1), at least as large as those before it, at most 1. NaN stays NaN, and is
    not counted.

    Holm (1979), Scandinavian Journal of Statistics 6(2).
    """
    order = np.argsort(p, kind="stable")[: int(np.isfinite(p).sum())]  # NaN come last
    stepped = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    corrected = np.full(len(p), np.nan)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected
