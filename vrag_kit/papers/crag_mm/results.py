"""Truthfulness by the paper's rules: means of every arm, slices, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import (
    compare,
    conversation_means,
    conversation_values,
    slice_means,
    slice_values,
)
from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.comparison import REPEATS
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.types import Benchmark

COMPARED = ("truthfulness", "accuracy", "missing", "hallucination")
"""What arms are compared by."""
STEPS = (("mm_llm", "task_1"), ("mm_llm", "task_2"), ("task_1", "task_2"))
"""Which arm of single questions is compared with which: baseline, arm."""
_OF_STOPS = ("early_stop", "early_stop_with_turns_left", "successful_turns")


def truth_means(
    judged: pd.DataFrame, benchmark: Benchmark, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """`conversation_means` with the paper's stop, `two_not_right`; of single questions too,
    but for what tells of stops, as a question alone has none.
    """
    means = conversation_means(judged, benchmark, two_not_right, by=by)
    if any(query.conversation_id for query in benchmark.queries.values()):
        return means
    return means[~means["metric"].isin(_OF_STOPS)].reset_index(drop=True)


def truth_slices(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """`slice_means` with the paper's stop: `labels` name each query's slice."""
    return slice_means(judged, benchmark, two_not_right, labels, by=by)


def truth_gains(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
    metrics: Sequence[str] = COMPARED,
) -> pd.DataFrame:
    """Paired differences of each arm to `baseline`, of `metrics`: metric, baseline, arm,
    `by`, value, ci_low, ci_high, n, n_failed, p, p_holm (see `compare`), as shares.

    Truthfulness is paired by conversations, shares of turns by turns; intervals and
    tests are over conversations. p_holm corrects within one metric, arm and baseline.
    Raises `VragError` when `baseline` was not asked.
    """
    values = {}
    for metric in metrics:
        values[metric] = conversation_values(
            judged, benchmark, two_not_right, metric=metric, by=[*by, arm]
        )
    return _gains(values, baseline=baseline, arm=arm, by=by)


def slice_gains(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """`truth_gains` slice by slice, which `labels` name for each query: metric, baseline,
    arm, `by`, slice and the numbers, as shares.

    Truthfulness is that of `truth_slices`, paired by conversations; accuracy, missing
    and hallucination are of the turns as they were answered. p_holm corrects within one
    metric, arm, baseline and slice. Raises as `slice_values` does, and when `baseline`
    was not asked.
    """
    values = {}
    for metric in COMPARED:
        values[metric] = _slice_values(judged, benchmark, labels, metric, [*by, arm])
    return _gains(values, baseline=baseline, arm=arm, by=[*by, "slice"])


def _gains(
    values: Mapping[str, pd.DataFrame], *, baseline: str, arm: str, by: Sequence[str]
) -> pd.DataFrame:
    """Metric → what `compare` takes: all differences in one table, metric and baseline
    first.
    """
    tables = []
    for metric, rows in values.items():
        table = compare(rows, arm=arm, by=list(by), baseline=baseline, repeats=REPEATS)
        tables.append(table.assign(metric=metric))
    both = pd.concat(tables, ignore_index=True)
    return both[["metric", "baseline", *both.columns.drop(["metric", "baseline"])]]


def _slice_values(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    metric: str,
    by: Sequence[str],
) -> pd.DataFrame:
    """What `compare` takes of a metric, with the column slice."""
    if metric == "truthfulness":
        return slice_values(judged, benchmark, two_not_right, labels, by=by)
    values = conversation_values(judged, benchmark, two_not_right, metric=metric, by=by)
    return values.assign(slice=values["query_id"].map(labels))
