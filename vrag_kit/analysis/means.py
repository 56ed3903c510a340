"""Accuracy and abstention of judged answers, by model, setting and k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import PoststratificationWeights, cluster_means
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.tables import require_columns

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
    weights: PoststratificationWeights | None = None,
) -> pd.DataFrame:
    """Mean of each of `columns`, whose values lie on `scale`: `by`, metric (the column),
    value, ci_low, ci_high, n, n_failed.

    The draws of a query are averaged first; the mean is over queries, the interval over groups. n
    counts queries with a value, n_failed the *answers* without one, which are left out, never
    counted as the scale's worst. With `weights` the mean is weighted.
    """
    require_columns(judged, ["query_id", "group"], "column_means")
    arm, tables = list(by), []
    apart = [*arm, *_parts(weights)]
    for column in columns:
        means = cluster_means(_means_by_query(judged, column, apart, scale), arm, weights=weights)
        missing = judged.assign(n_failed=judged[column].isna())
        failed = missing.groupby(arm, sort=False, dropna=False)["n_failed"].sum().reset_index()
        table = means.drop(columns="n_failed").merge(failed, on=arm, how="left")
        tables.append(table.assign(metric=column))
    return pd.concat(tables, ignore_index=True)[[*arm, "metric", *_MEANS]]


def mean_scores(
    judged: pd.DataFrame,
    *,
    by: Sequence[str] = ARM,
    weights: PoststratificationWeights | None = None,
) -> pd.DataFrame:
    """Mean score and abstention rate: `by`, metric, value, ci_low, ci_high, n, n_failed, n_empty,
    n_truncated, and `BOUNDS` of the score.

    The mean is over queries, the interval over groups, with the draws of a query kept together; n
    counts queries with a verdict and n_failed the *answers* without one (failed calls and unparsed
    verdicts), which are left out, never counted as incorrect; n_empty and n_truncated count empty
    and truncated answers, which have the worst score. bound_low and bound_high are the mean if each
    answer without a verdict had the worst or the best score; if_refusals_incorrect if those that
    the model's provider refused had the worst. With `weights`, whose column `judged` has, all means
    are weighted.
    """
    require_columns(judged, ["query_id", "group", "status", "score", "abstained"], "mean_scores")
    arm, scale = list(by), scale_of(judged)
    apart = [*arm, *_parts(weights)]
    scores = column_means(judged, ["score"], by=arm, scale=scale, weights=weights)
    shares = column_means(judged, ["abstained"], by=arm, weights=weights)
    refused = judged["status"] == "refused"
    filled = judged.assign(
        bound_low=judged["score"].fillna(scale.worst),
        bound_high=judged["score"].fillna(scale.best),
        if_refusals_incorrect=judged["score"].mask(refused, scale.worst),
    )
    for bound in BOUNDS:
        means = cluster_means(_means_by_query(filled, bound, apart, scale), arm, weights=weights)
        of_arms = means[[*arm, "value"]].rename(columns={"value": bound})
        scores = scores.merge(of_arms, on=arm, how="left")
    table = pd.concat(
        [scores.assign(metric="accuracy"), shares.assign(metric="abstention")], ignore_index=True
    )
    silent = judged.assign(
        n_empty=judged["status"] == "empty", n_truncated=judged["status"] == "truncated"
    )
    counts = silent.groupby(arm, sort=False, dropna=False)[SILENT].sum().reset_index()
    return table.merge(counts, on=arm, how="left")[[*arm, "metric", *_MEANS, *SILENT, *BOUNDS]]


def std_over_draws(judged: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over draws, as in the paper's Tables 13 and 15: `ARM`, runs,
    value, std.

    value is the mean of the draws' means, on the judge's scale: that of `mean_scores`, which counts
    every question once, unless answers failed; std has ddof = 1 (as the paper's, see
    `16_paper_audit`) and is NaN for a single draw. It shows how much the choice of images, and
    sampled decoding, change a mean over the same queries; the interval of `mean_scores` shows how
    much other queries would.
    """
    draws = judged.groupby([*ARM, "draw"], sort=False, dropna=False)["score"].mean()
    arms = draws.groupby(list(ARM), sort=False, dropna=False)
    table = arms.agg(["count", "mean", "std"]).reset_index()
    return table.rename(columns={"count": "runs", "mean": "value"}).assign(metric="accuracy")


def best_top_k(results: pd.DataFrame) -> pd.DataFrame:
    """Replaces the top-k rows of `mean_scores` by each model's best one, as the setting "rag_best"
    (Visual-RAG, Table 6); of each stratum where there are some.

    The k is chosen on the same queries that it is then reported on, as in the paper, so its mean is
    slightly optimistic.
    """
    retrieved = results[results["setting"] == "top_k"].dropna(subset="value")
    by = [name for name in ("model", "stratum") if name in retrieved]
    highest = retrieved.groupby(by, sort=False)["value"].idxmax()
    best = retrieved.loc[highest].assign(setting="rag_best")
    return pd.concat([results[results["setting"] != "top_k"], best], ignore_index=True)


def _means_by_query(
    judged: pd.DataFrame, column: str, by: Sequence[str], scale: Scale
) -> pd.DataFrame:
    """Mean of `column` over the draws of a query, with its group and the scale's ends."""
    keys = list(dict.fromkeys([*by, "query_id", "group"]))  # an arm may be a group
    queries = judged.groupby(keys, sort=False, dropna=False)
    means = queries.agg(value=(column, "mean")).reset_index()
    return means.assign(score_min=scale.worst, score_max=scale.best)


def _parts(weights: PoststratificationWeights | None) -> list[str]:
    """The column that a mix needs beside those of an arm."""
    return [weights.column] if weights else []
