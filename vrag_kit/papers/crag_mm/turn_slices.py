"""Shares of turns, by slice, and before and after the stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import conversation_values, summarise
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.types import Benchmark, QueryId

NEEDS_HISTORY = "needs history"
STANDS_ALONE = "stands alone"
UNTOLD = "not told"
WHEN = {"": "all turns", "_stopped": "after the stop"}
"""Ending of a metric's name → what its shares are of."""
_SHARES = ("accuracy", "missing", "hallucination")


def needs_history(benchmark: Benchmark) -> dict[QueryId, str]:
    """Query → "needs history", "stands alone", or "not told" where the data do not say."""
    words = {True: NEEDS_HISTORY, False: STANDS_ALONE, None: UNTOLD}
    return {
        name: words[query.metadata.get("needs_history")]
        for name, query in benchmark.queries.items()
    }


def turn_shares(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[QueryId, str],
    *,
    by: Sequence[str],
) -> pd.DataFrame:
    """accuracy, missing and hallucination of the turns of each slice, which `labels`
    name, as they were answered: slice, `by`, metric, value, ci_low, ci_high, n (turns),
    n_failed, as shares; intervals over groups.

    NaN where turns after a stop were not asked. Raises as `with_stop` does.
    """
    tables = []
    for metric in _SHARES:
        values = conversation_values(judged, benchmark, two_not_right, metric=metric, by=by)
        sliced = values.assign(slice=values["query_id"].map(labels))
        tables.append(summarise(sliced, ["slice", *by]).assign(metric=metric))
    return pd.concat(tables, ignore_index=True)


def before_and_after(means: pd.DataFrame) -> pd.DataFrame:
    """The rows of `truth_means` on shares of turns, with the column when: "all turns", as
    they were answered, or "after the stop", which makes all later turns missing; metric
    is accuracy, missing or hallucination in either.
    """
    tables = []
    for metric in _SHARES:
        for ending, when in WHEN.items():
            rows = means[means["metric"] == metric + ending]
            tables.append(rows.assign(metric=metric, when=when))
    return pd.concat(tables, ignore_index=True)
