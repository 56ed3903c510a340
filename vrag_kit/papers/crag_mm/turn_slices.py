"""Outcome rates of turns, by slice, and with and without early stopping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import cluster_means
from vrag_kit.papers.crag_mm.conversation_means import conversation_values
from vrag_kit.papers.crag_mm.stop_rule import early_stopping_rule
from vrag_kit.types import Benchmark, QueryId

NEEDS_HISTORY = "needs history"
SELF_CONTAINED = "self-contained"
NOT_ANNOTATED = "not annotated"
EARLY_STOPPING = {"": "without", "_early_stopped": "with"}
"""Maps the suffix of a metric to whether its shares are with early stopping."""
_SHARES = ("accuracy", "missing", "hallucination")


def needs_history(benchmark: Benchmark) -> dict[QueryId, str]:
    """Maps each query to "needs history", "self-contained", or "not annotated"."""
    words = {True: NEEDS_HISTORY, False: SELF_CONTAINED, None: NOT_ANNOTATED}
    return {
        name: words[query.metadata.get("needs_history")]
        for name, query in benchmark.queries.items()
    }


def turn_outcome_rates(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[QueryId, str],
    *,
    by: Sequence[str],
) -> pd.DataFrame:
    """Computes accuracy, missing and hallucination of the turns in each slice of `labels`, without
    early stopping. Columns: slice, `by`, metric, value, ci_low, ci_high, n (turns), n_failed, as
    shares; intervals over groups.

    NaN if turns after a stop were not asked. Raises as `apply_early_stop` does.
    """
    tables = []
    for metric in _SHARES:
        values = conversation_values(judged, benchmark, early_stopping_rule, metric=metric, by=by)
        sliced = values.assign(slice=values["query_id"].map(labels))
        tables.append(cluster_means(sliced, ["slice", *by]).assign(metric=metric))
    return pd.concat(tables, ignore_index=True)


def before_and_after_early_stop(means: pd.DataFrame) -> pd.DataFrame:
    """Selects the shares of turns from `truthfulness_means` and adds the column early_stopping:
    "without", or "with", where all turns after the stop are missing. metric is accuracy, missing or
    hallucination in both.
    """
    tables = []
    for metric in _SHARES:
        for ending, stopping in EARLY_STOPPING.items():
            rows = means[means["metric"] == metric + ending]
            tables.append(rows.assign(metric=metric, early_stopping=stopping))
    return pd.concat(tables, ignore_index=True)
