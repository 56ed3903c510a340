"""Accuracy and abstention of judged answers, by model, setting and k."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.analysis.mix import Mix
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import SHARES, Scale, scale_of

ARM = ["model", "setting", "k"]
METRICS = {"accuracy": "score", "abstention": "abstained"}
SILENT = ["n_empty", "n_cut_off"]
BOUNDS = ["if_all_wrong", "if_all_right", "if_refusals_wrong"]
_MEANS = ["value", "ci_low", "ci_high", "n", "n_failed"]


def per_query(
    judged: pd.DataFrame, *, metric: str = "accuracy", by: Sequence[str] = ARM
) -> pd.DataFrame:
    """One row a query and arm: `by`, query_id, group, value, and worst and best, the
    ends of the scale that the value is on.

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
    mix: Mix | None = None,
) -> pd.DataFrame:
    """Mean of each of `columns`, whose values lie on `scale`: `by`, metric (the column),
    value, ci_low, ci_high, n, n_failed.

    The draws of a query are averaged first; the mean is over queries, the interval over
    groups. n counts queries with a value, n_failed the *answers* without one, which are
    left out, never counted as the scale's worst. With a `mix` the mean is its.
    """
    require_columns(judged, ["query_id", "group"], "column_means")
    arm, tables = list(by), []
    apart = [*arm, *_parts(mix)]
    for column in columns:
        means = summarise(_means_by_query(judged, column, apart, scale), arm, mix=mix)
        missing = judged.assign(n_failed=judged[column].isna())
        failed = missing.groupby(arm, sort=False, dropna=False)["n_failed"].sum().reset_index()
        table = means.drop(columns="n_failed").merge(failed, on=arm, how="left")
        tables.append(table.assign(metric=column))
    return pd.concat(tables, ignore_index=True)[[*arm, "metric", *_MEANS]]


def accuracy(
    judged: pd.DataFrame, *, by: Sequence[str] = ARM, mix: Mix | None = None
) -> pd.DataFrame:
    """Mean score and share of abstentions: `by`, metric, value, ci_low, ci_high, n,
    n_failed, n_empty, n_cut_off, and for the score what failures could change at most.

    The mean is over queries, the interval over groups, with the draws of a query kept
    together; n counts queries with a verdict and n_failed the *answers* without one
    (failed calls and unreadable verdicts), which are left out, never counted as wrong;
    n_empty and n_cut_off count answers that earn the worst, as the models left them.
    if_all_wrong and if_all_right are the mean if each of them earned the worst or the
    best of the judge's scale; if_refusals_wrong if only those earned the worst that the
    model's provider refused. With a `mix`, whose column `judged` has, all means are its.
    """
    require_columns(judged, ["query_id", "group", "status", "score", "abstained"], "accuracy")
    arm, scale = list(by), scale_of(judged)
    apart = [*arm, *_parts(mix)]
    scores = column_means(judged, ["score"], by=arm, scale=scale, mix=mix)
    shares = column_means(judged, ["abstained"], by=arm, mix=mix)
    refused = judged["status"] == "refused"
    filled = judged.assign(
        if_all_wrong=judged["score"].fillna(scale.worst),
        if_all_right=judged["score"].fillna(scale.best),
        if_refusals_wrong=judged["score"].mask(refused, scale.worst),
    )
    for bound in BOUNDS:
        means = summarise(_means_by_query(filled, bound, apart, scale), arm, mix=mix)
        of_arms = means[[*arm, "value"]].rename(columns={"value": bound})
        scores = scores.merge(of_arms, on=arm, how="left")
    table = pd.concat(
        [scores.assign(metric="accuracy"), shares.assign(metric="abstention")], ignore_index=True
    )
    silent = judged.assign(
        n_empty=judged["status"] == "empty", n_cut_off=judged["status"] == "truncated"
    )
    counts = silent.groupby(arm, sort=False, dropna=False)[SILENT].sum().reset_index()
    return table.merge(counts, on=arm, how="left")[[*arm, "metric", *_MEANS, *SILENT, *BOUNDS]]


def over_draws(judged: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over the draws, as the paper's Tables 13 and 15 give
    them: `ARM`, runs, value, std.

    value is the mean of the draws' means, on the judge's scale: that of `accuracy`, which
    counts every question once, unless answers failed; std has ddof = 1 (as the
    paper's, see `16_paper_audit`) and is NaN for a single draw. It tells how much the
    choice of images, and sampled decoding, move a mean over these same queries; how far
    other queries would is told by the interval of `accuracy`.
    """
    draws = judged.groupby([*ARM, "draw"], sort=False, dropna=False)["score"].mean()
    arms = draws.groupby(list(ARM), sort=False, dropna=False)
    table = arms.agg(["count", "mean", "std"]).reset_index()
    return table.rename(columns={"count": "runs", "mean": "value"}).assign(metric="accuracy")


def best_top_k(results: pd.DataFrame) -> pd.DataFrame:
    """`results` of `accuracy` with, instead of all top-k rows, each model's best one as
    the setting "rag_best" (Visual-RAG, Table 6); of each stratum where there are some.

    The k is chosen on the same queries that it is then reported on, as in the paper:
    its mean is a little too good.
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
    return means.assign(worst=scale.worst, best=scale.best)


def _parts(mix: Mix | None) -> list[str]:
    """The column that a mix needs beside those of an arm."""
    return [mix.column] if mix else []
