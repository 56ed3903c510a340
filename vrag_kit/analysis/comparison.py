"""Differences between arms, paired over queries, with clusters kept together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.clusters import cluster_mean
from vrag_kit.errors import VragError
from vrag_kit.frames import VALUES
from vrag_kit.judging.scale import scale_of


def compare(per_query: pd.DataFrame, *, arm: str, by: Sequence[str], baseline: str) -> pd.DataFrame:
    """Difference of every arm to `baseline` on the queries that both have: arm, `by`,
    value, ci_low, ci_high, n, p, p_holm.

    Interval and p are of one test over groups (`ClusterMean`): 0 is outside of the 95 %
    interval exactly where p is below 0.05; p_holm corrects p for all rows of the table.
    Where all groups differ alike, or not at all, the interval tells what as many may
    leave unseen. Interval and p are NaN for one group whose queries differ otherwise.
    Columns needed in `per_query`: query_id, group, value, `arm` and `by`, and worst and
    best where the values are on another scale than [0, 1].
    """
    VALUES.check(per_query, ["query_id", "group", "value"], "compare")
    keys = [*by, "query_id", "group"]
    wide = per_query.pivot_table(index=keys, columns=arm, values="value", sort=False)
    if len(per_query) and baseline not in wide.columns:
        raise VragError(
            f"no query has a value for {baseline!r}, so nothing can be compared with it; found"
            f" {', '.join(map(str, wide.columns)) or 'none'}."
        )
    scales = {key: scale_of(part).differences for key, part in per_query.groupby(list(by))}
    rows = []
    for name in [column for column in wide.columns if column != baseline]:
        pairs = wide[[name, baseline]].dropna().reset_index()
        pairs = pairs.assign(difference=pairs[name] - pairs[baseline])
        for key, part in pairs.groupby(list(by), sort=False):
            found = cluster_mean(part["difference"].to_numpy(float), part["group"], scales[key])
            rows.append((name, *key, found.value, *found.interval(), len(part), found.p()))
    table = pd.DataFrame(rows, columns=[arm, *by, "value", "ci_low", "ci_high", "n", "p"])
    return table.assign(p_holm=holm(table["p"].to_numpy(float)))


def since_smallest_k(per_query: pd.DataFrame) -> pd.DataFrame:
    """Each value less that of the same query at the smallest k of its model and setting,
    without that k; worst and best are those of differences. So `compare(…, arm="model")`
    tells whether one model loses more over k than another.
    """
    VALUES.check(per_query, ["query_id", "value"], "since_smallest_k")
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
