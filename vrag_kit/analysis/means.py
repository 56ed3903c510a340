"""Accuracy and abstention of judged answers, by model, setting and k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.judging.scale import SHARES, Scale, require_columns, scale_of

_SHARES = (
    *("value", "ci_low", "ci_high", "std", "bound_low", "bound_high", "if_refusals_incorrect"),
    *("value_a", "ci_low_a", "ci_high_a", "value_b", "ci_low_b", "ci_high_b", "mde"),
    *("if_neutral", "if_entailed"),
)


_COUNTS = {"hit_count": "images", "successful_turns": "turns"}
"""Metrics that are counts → their unit."""


def to_percent(results: pd.DataFrame) -> pd.DataFrame:
    """Converts shares in [0, 1], and scores in [−1, 1], to percent, as papers report them.
    hit_count stays a number of images, successful_turns one of turns. A column `unit` gives the
    unit.
    """
    units = results["metric"].map(_COUNTS).fillna("percent")
    factor = np.where(units == "percent", 100.0, 1.0)
    scaled = {column: results[column] * factor for column in _SHARES if column in results}
    return results.assign(**scaled, unit=units)


ARM = ["model", "setting", "k"]
METRICS = {"accuracy": "score", "abstention": "abstained"}
SILENT = ["n_empty", "n_truncated"]
BOUNDS = ["bound_low", "bound_high", "if_refusals_incorrect"]
_MEANS = ["value", "ci_low", "ci_high", "n", "n_failed"]


def per_query(
    judged: pd.DataFrame, *, metric: str = "accuracy", by: Sequence[str] = ARM
) -> pd.DataFrame:
    """One row per query and arm: `by`, query_id, group, value, and score_min and score_max, the
    ends of the scale of the value.

    The value is the mean over the draws that have a verdict; NaN when none has.
    """
    column = METRICS[metric]
    require_columns(judged, ["query_id", "group", column], "per_query")
    scale = scale_of(judged) if metric == "accuracy" else SHARES
    return _means_by_query(judged, column, by, scale)


def column_means(
    judged: pd.DataFrame,
    columns: Sequence[str],
    *,
    by: Sequence[str] = ARM,
    scale: Scale = SHARES,
    weights: pd.Series | None = None,
) -> pd.DataFrame:
    """Mean of each of `columns`, whose values lie on `scale`: `by`, metric (the column),
    value, ci_low, ci_high, n, n_failed.

    The draws of a query are averaged first; the mean is over queries, the interval over groups. n
    counts queries with a value, n_failed the *answers* without one, which are left out, never
    counted as the scale's worst. `weights` as in `table_mean`.
    """
    require_columns(judged, ["query_id", "group"], "column_means")
    arm, tables = list(by), []
    for column in columns:
        parts = [] if weights is None else [str(weights.index.name)]
        per_query = _means_by_query(judged, column, [*arm, *parts], scale)
        failed = judged.assign(n_failed=judged[column].isna()).groupby(
            arm, sort=False, dropna=False
        )
        means = cluster_means(per_query, arm, weights=weights).drop(columns="n_failed")
        table = means.merge(failed["n_failed"].sum().reset_index(), on=arm, how="left")
        tables.append(table.assign(metric=column))
    return pd.concat(tables, ignore_index=True)[[*arm, "metric", *_MEANS]]


def mean_scores(
    judged: pd.DataFrame,
    *,
    by: Sequence[str] = ARM,
    weights: pd.Series | None = None,
) -> pd.DataFrame:
    """Mean score and abstention rate: `by`, metric, value, ci_low, ci_high, n, n_failed, n_empty,
    n_truncated, and `BOUNDS` of the score.

    The mean is over queries, the interval over groups, with the draws of a query kept together; n
    counts queries with a verdict and n_failed the *answers* without one (failed calls and unparsed
    verdicts), which are left out, never counted as incorrect; n_empty and n_truncated count empty
    and truncated answers, which have the worst score. bound_low and bound_high are the mean if each
    answer without a verdict had the worst or the best score; if_refusals_incorrect if those that
    the model's provider refused had the worst. With `weights`, as in `table_mean`, all means are
    post-stratified.
    """
    require_columns(judged, ["query_id", "group", "status", "score", "abstained"], "mean_scores")
    arm, scale = list(by), scale_of(judged)
    filled = judged.assign(
        bound_low=judged["score"].fillna(scale.worst),
        bound_high=judged["score"].fillna(scale.best),
        if_refusals_incorrect=judged["score"].mask(judged["status"] == "refused", scale.worst),
        n_empty=judged["status"] == "empty",
        n_truncated=judged["status"] == "truncated",
    )
    means = column_means(filled, ["score", *BOUNDS], by=arm, scale=scale, weights=weights)
    accuracy = means[means["metric"] == "score"].assign(metric="accuracy")
    for bound in BOUNDS:
        accuracy[bound] = means.loc[means["metric"] == bound, "value"].to_numpy()
    abstention = column_means(judged, ["abstained"], by=arm, weights=weights)
    table = pd.concat([accuracy, abstention.assign(metric="abstention")], ignore_index=True)
    counts = filled.groupby(arm, sort=False, dropna=False)[SILENT].sum().reset_index()
    return table.merge(counts, on=arm, how="left")[[*arm, "metric", *_MEANS, *SILENT, *BOUNDS]]


def _means_by_query(
    judged: pd.DataFrame, column: str, by: Sequence[str], scale: Scale
) -> pd.DataFrame:
    """Mean of `column` over the draws of a query, with its group and the scale's ends."""
    keys = list(dict.fromkeys([*by, "query_id", "group"]))  # an arm may be a group
    queries = judged.groupby(keys, sort=False, dropna=False)
    means = queries.agg(value=(column, "mean")).reset_index()
    return means.assign(score_min=scale.worst, score_max=scale.best)
