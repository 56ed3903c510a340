"""Accuracy and abstention of judged answers, by model, setting and k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.intervals import summarise

ARM = ["model", "setting", "k"]
METRICS = {"accuracy": "score", "abstention": "abstained"}


def per_query(judged: pd.DataFrame, *, metric: str = "accuracy", by: Sequence[str] = ARM) -> pd.DataFrame:
    """One row a query and arm: `by`, query_id, value in [0, 1]. The value is the mean over the draws that have a verdict; NaN when none has."""
    means = judged.groupby([*by, "query_id"], sort=False, dropna=False)[METRICS[metric]].mean()
    return means.rename("value").reset_index()


def accuracy(judged: pd.DataFrame, groups: Mapping[str, str], *, by: Sequence[str] = ARM, seed: int = 0) -> pd.DataFrame:
    """Mean score and share of abstentions: `by`, metric, value, ci_low, ci_high, n, n_failed.

    The mean is over queries, the interval over groups, with the draws of a query kept together; n counts queries with a verdict and
    n_failed the *answers* without one (failed calls and unreadable verdicts), which are left out, never counted as 0.
    """
    failed = judged.assign(failed=judged["score"].isna()).groupby(list(by), sort=False, dropna=False)["failed"].sum().rename("n_failed").reset_index()
    tables = []
    for metric in METRICS:
        table = summarise(per_query(judged, metric=metric, by=by), groups, by, seed=seed).drop(columns="n_failed")
        tables.append(table.merge(failed, on=list(by), how="left").assign(metric=metric))
    return pd.concat(tables, ignore_index=True)[[*by, "metric", "value", "ci_low", "ci_high", "n", "n_failed"]]
