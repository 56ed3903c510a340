"""Retrieval metrics of one's own: a function each, measured beside the kit's."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.options import check_list
from vrag_kit.own_classes import open_function, own_code

RetrievalMetric = Callable[[np.ndarray, int], float]
"""What k documents are worth to one query, from 0 to 1; NaN where there is nothing to
measure, which is left out of means, and of their n.

It is given whether each of the first k documents is relevant, best first, shape (k,),
bool, False behind the last one that was found; and how many relevant ones there are at
all, one at least.
"""
_ROUNDING = 1e-9


def open_metrics(
    entries: Sequence[str | RetrievalMetric], known: Collection[str]
) -> dict[str, RetrievalMetric]:
    """Name → function, of functions and of "module:function"; the names of `known`, which
    are measured anyway, are passed over.

    A metric is called as its function is. Raises `VragError` for what names no function,
    for a function without a name of its own, and for a name that is taken.
    """
    check_list(entries, "metrics")
    opened: dict[str, RetrievalMetric] = {}
    for entry in entries:
        if isinstance(entry, str) and entry in known:
            continue
        function = open_function(entry, "metric")
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


def measure(
    name: str,
    function: RetrievalMetric,
    relevant: np.ndarray,
    n_relevant: np.ndarray,
    query_ids: Sequence[str],
) -> np.ndarray:
    """What a metric gives for each query, shape (queries,); NaN for those without
    relevant documents, for which it is not called.

    `relevant` has the shape (queries, k), `n_relevant` (queries,). Raises `VragError`,
    naming the query, for a metric that fails, or gives no number from 0 to 1.
    """
    values = np.full(len(query_ids), np.nan)
    k = relevant.shape[1]
    for row in np.flatnonzero(n_relevant > 0).tolist():
        where = f"metric {name!r} of query {query_ids[row]!r} at k = {k}"
        with own_code(f"{where}: it", function):
            found = function(relevant[row].copy(), int(n_relevant[row]))
        values[row] = _share(found, where)
    return values


def _share(found: object, where: str) -> float:
    """What a metric gave, as a number from 0 to 1, or NaN."""
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
