"""Custom retrieval metrics: one function each, computed with the kit's."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.options import check_list
from vrag_kit.own_classes import catch_custom_errors, load_function

RetrievalMetric = Callable[[np.ndarray, int], float]
"""A metric's value for one query's first k documents, from 0 to 1; NaN where it is undefined. NaN
is left out of means, and of their n.

Its arguments are whether each of the first k documents is relevant, best first, shape (k,), bool,
False after the last result; and the number of relevant documents, at least one.
"""
_ROUNDING = 1e-9


def load_metrics(
    entries: Sequence[str | RetrievalMetric], known: Collection[str]
) -> dict[str, RetrievalMetric]:
    """Returns name → function, of functions and of "module:function". Names in `known`, which are
    computed anyway, are skipped.

    A metric has its function's name. Raises `VragError` for an entry that names no function, for a
    function without a name, and for a name that is taken.
    """
    check_list(entries, "metrics")
    opened: dict[str, RetrievalMetric] = {}
    for entry in entries:
        if isinstance(entry, str) and entry in known:
            continue
        function = load_function(entry, "metric")
        if function is None:
            raise VragError(
                f"metric {entry!r}: expected one of {', '.join(known)}, or a function as"
                ' "module:function", such as "my_metrics:rbp".'
            )
        name = str(getattr(function, "__name__", ""))
        if not name.isidentifier():
            raise VragError(
                f"metric {entry!r} has no name of its own; expected a function of a `def`."
            )
        if name in known or name in opened:
            raise VragError(f"two metrics are named {name!r}; call the function otherwise.")
        opened[name] = function
    return opened


def apply_metric(
    name: str,
    function: RetrievalMetric,
    relevant: np.ndarray,
    n_relevant: np.ndarray,
    query_ids: Sequence[str],
) -> np.ndarray:
    """Returns a metric's value for each query, shape (queries,). It is NaN for queries without
    relevant documents, for which the metric is not called.

    `relevant` has the shape (queries, k), `n_relevant` (queries,). Raises `VragError`, naming the
    query, for a metric that fails, or gives no number from 0 to 1.
    """
    values = np.full(len(query_ids), np.nan)
    k = relevant.shape[1]
    for row in np.flatnonzero(n_relevant > 0).tolist():
        where = f"metric {name!r} of query {query_ids[row]!r} at k = {k}"
        with catch_custom_errors(f"{where}: it", function):
            found = function(relevant[row].copy(), int(n_relevant[row]))
        values[row] = _share(found, where)
    return values


def _share(found: object, where: str) -> float:
    """Returns a metric's value as a number from 0 to 1, or NaN."""
    number = isinstance(found, int | float | np.number | np.bool_)
    value = float(found) if number else math.inf  # type: ignore[arg-type]  # it is a number
    if math.isnan(value):
        return value
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise VragError(
            f"{where}: it gave {found!r}; expected a number from 0 to 1, or NaN where there is"
            " nothing to measure."
        )
    return min(max(value, 0.0), 1.0)
