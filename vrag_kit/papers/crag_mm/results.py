"""Truthfulness by the paper's rules: means of every arm, by slice, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import paired_differences
from vrag_kit.analysis.means import ARM
from vrag_kit.papers.crag_mm.conversation_means import conversation_means, conversation_values
from vrag_kit.papers.crag_mm.stop_rule import early_stopping_rule
from vrag_kit.types import Benchmark

COMPARED = ("truthfulness", "accuracy", "missing", "hallucination")
"""Metrics by which arms are compared."""
STEPS = {
    "task_1, mm_llm": "image search − no search",
    "task_2, mm_llm": "both searches − no search",
    "task_2, task_1": "both searches − image search",
}
"""Differences between settings on single questions: arm and baseline → name."""
_OF_STOPS = ("early_stop", "early_stop_before_last_turn", "successful_turns")


def truthfulness_means(
    judged: pd.DataFrame, benchmark: Benchmark, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Computes `conversation_means` with the paper's `early_stopping_rule`. For single questions
    the metrics of early stopping are dropped.
    """
    means = conversation_means(judged, benchmark, early_stopping_rule, by=by)
    if any(query.conversation_id for query in benchmark.queries.values()):
        return means
    return means[~means["metric"].isin(_OF_STOPS)].reset_index(drop=True)


def truthfulness_by_slice(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Computes `conversation_means` by slice with the paper's early stopping; `labels` map queries
    to slices."""
    return conversation_means(judged, benchmark, early_stopping_rule, by=by, slices=labels)


def truthfulness_gains(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
    metrics: Sequence[str] = COMPARED,
) -> pd.DataFrame:
    """Computes paired differences of each arm from `baseline` for `metrics`: metric, baseline, arm,
    `by`, value, ci_low, ci_high, n, n_failed, p, p_holm (see `paired_differences`), as shares.

    Truthfulness is paired by conversations, shares of turns by turns; intervals and tests are over
    conversations. p_holm corrects within one metric, arm and baseline. Raises `VragError` if
    `baseline` has no answers.
    """
    values = {}
    for metric in metrics:
        values[metric] = conversation_values(
            judged, benchmark, early_stopping_rule, metric=metric, by=[*by, arm]
        )
    return _gains(values, baseline=baseline, arm=arm, by=by)


def gains_by_slice(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Computes `truthfulness_gains` within each slice of `labels` (query → slice). Columns: metric,
    baseline, arm, `by`, slice and the numbers, as shares.

    Truthfulness is that of `truthfulness_by_slice`, paired by conversations; accuracy, missing and
    hallucination are of all turns, without early stopping. p_holm corrects within one metric, arm,
    baseline and slice. Raises as `conversation_values` does, and if `baseline` has no answers.
    """
    values = {}
    for metric in COMPARED:
        values[metric] = _slice_values(judged, benchmark, labels, metric, [*by, arm])
    return _gains(values, baseline=baseline, arm=arm, by=[*by, "slice"])


def _gains(
    values: Mapping[str, pd.DataFrame], *, baseline: str, arm: str, by: Sequence[str]
) -> pd.DataFrame:
    """Metric → what `paired_differences` takes: all differences in one table, metric and baseline
    first.
    """
    tables = []
    for metric, rows in values.items():
        table = paired_differences(rows, arm=arm, by=list(by), baseline=baseline)
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
    """What `paired_differences` takes of a metric, with the column slice."""
    if metric == "truthfulness":
        return conversation_values(judged, benchmark, early_stopping_rule, by=by, slices=labels)
    values = conversation_values(judged, benchmark, early_stopping_rule, metric=metric, by=by)
    return values.assign(slice=values["query_id"].map(labels))
