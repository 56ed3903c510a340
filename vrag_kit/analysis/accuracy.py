"""Accuracy and abstention of judged answers, by model, setting and k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.intervals import summarise

ARM = ["model", "setting", "k"]
METRICS = {"accuracy": "score", "abstention": "abstained"}


def per_query(
    judged: pd.DataFrame, *, metric: str = "accuracy", by: Sequence[str] = ARM
) -> pd.DataFrame:
    """One row a query and arm: `by`, query_id, value in [0, 1].

    The value is the mean over the draws that have a verdict; NaN when none has.
    """
    means = judged.groupby([*by, "query_id"], sort=False, dropna=False)[METRICS[metric]].mean()
    return means.rename("value").reset_index()


def column_means(
    judged: pd.DataFrame,
    columns: Sequence[str],
    groups: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
    seed: int = 0,
) -> pd.DataFrame:
    """Mean of each of `columns`, whose values lie in [0, 1]: `by`, metric (the column),
    value, ci_low, ci_high, n, n_failed.

    The draws of a query are averaged first; the mean is over queries, the interval over
    groups. n counts queries with a value, n_failed the *answers* without one, which are
    left out, never counted as 0.
    """
    by, tables = list(by), []
    for column in columns:
        means = (
            judged.groupby([*by, "query_id"], sort=False, dropna=False)[column]
            .mean()
            .rename("value")
            .reset_index()
        )
        failed = (
            judged[column]
            .isna()
            .groupby([judged[name] for name in by], sort=False, dropna=False)
            .sum()
            .rename("n_failed")
            .reset_index()
        )
        tables.append(
            summarise(means, groups, by, seed=seed)
            .drop(columns="n_failed")
            .merge(failed, on=by, how="left")
            .assign(metric=column)
        )
    return pd.concat(tables, ignore_index=True)[
        [*by, "metric", "value", "ci_low", "ci_high", "n", "n_failed"]
    ]


def accuracy(
    judged: pd.DataFrame, groups: Mapping[str, str], *, by: Sequence[str] = ARM, seed: int = 0
) -> pd.DataFrame:
    """Mean score and share of abstentions: `by`, metric, value, ci_low, ci_high, n,
    n_failed, and for the score what failures could change at most.

    The mean is over queries, the interval over groups, with the draws of a query kept
    together; n counts queries with a verdict and n_failed the *answers* without one
    (failed calls and unreadable verdicts), which are left out, never counted as 0.
    if_all_wrong and if_all_right are the mean if each of them scored 0, or 1;
    if_refusals_wrong if only those scored 0 that the model's provider refused.
    """
    by = list(by)
    tables = [
        column_means(judged, [column], groups, by=by, seed=seed).assign(metric=metric)
        for metric, column in METRICS.items()
    ]
    refused = judged["status"] == "refused"
    scores = {
        "if_all_wrong": judged["score"].fillna(0.0),
        "if_all_right": judged["score"].fillna(1.0),
        "if_refusals_wrong": judged["score"].mask(refused, 0.0),
    }
    for name, score in scores.items():
        filled = (
            per_query(judged.assign(score=score), by=by)
            .groupby(by, sort=False, dropna=False)["value"]
            .mean()
            .rename(name)
            .reset_index()
        )
        tables[0] = tables[0].merge(filled, on=by, how="left")
    return pd.concat(tables, ignore_index=True)[
        [*by, "metric", "value", "ci_low", "ci_high", "n", "n_failed", *scores]
    ]


def over_draws(judged: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Mean and standard deviation over the draws, as the paper's Tables 13 and 15 give
    them: `by`, runs, value, std.

    value is the mean of the draws' means, in [0, 1]; std has ddof = 1 (as the paper's,
    see `16_paper_audit`) and is NaN for a single draw. It tells how much the choice of
    images, and sampled decoding, move a mean over these same queries; how far other
    queries would is told by the interval of `accuracy`.
    """
    draws = judged.groupby([*by, "draw"], sort=False, dropna=False)["score"].mean()
    table = (
        draws.groupby(list(by), sort=False, dropna=False)
        .agg(["count", "mean", "std"])
        .reset_index()
    )
    return table.rename(columns={"count": "runs", "mean": "value"}).assign(metric="accuracy")


def best_top_k(results: pd.DataFrame) -> pd.DataFrame:
    """`results` of `accuracy` with, instead of all top-k rows, each model's best one as
    the setting "rag_best" (Table 6).

    The k is chosen on the same queries that it is then reported on, as in the paper:
    its mean is a little too good.
    """
    retrieved = results[results["setting"] == "top_k"].dropna(subset="value")
    best = retrieved.loc[retrieved.groupby("model", sort=False)["value"].idxmax()].assign(
        setting="rag_best"
    )
    return pd.concat([results[results["setting"] != "top_k"], best], ignore_index=True)
