"""Ambiguous questions beside clear ones that are like them (Table 8), compared as pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.intervals import Estimate, estimate
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.order import ordered
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS, CLEAR
from vrag_kit.types import Benchmark


def clear_partners(benchmark: Benchmark, statuses: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """A clear question of the same data set for each ambiguous one: ambiguous, clear,
    group (the ambiguous one's), words_apart.

    `statuses` has query_id and status. Partners have the nearest number of words, and
    are taken once each; the ambiguous ones choose in an order by hash, and among equals
    the hash decides. Those for which none is left are without a pair. The paper calls
    its clear questions "matched", or "random", without saying how.
    """
    status = statuses.set_index("query_id")["status"]
    length = {name: len(query.text.split()) for name, query in benchmark.queries.items()}
    free = ordered(status.index[status == CLEAR], seed, "clear partner")
    rows = []
    for name in ordered(status.index[status == AMBIGUOUS], seed, "ambiguous"):
        if not free:
            break
        partner = min(free, key=lambda other: abs(length[other] - length[name]))
        free.remove(partner)
        apart = abs(length[partner] - length[name])
        rows.append((name, partner, benchmark.queries[name].group, apart))
    return pd.DataFrame(rows, columns=["ambiguous", "clear", "group", "words_apart"])


def ambiguous_less_clear(
    values: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Means over the pairs: `by`, split ("clear", "ambiguous", "difference"), value,
    ci_low, ci_high, n (pairs), n_failed.

    `values` come from `per_query` (query_id, value, worst and best, `by`). A pair
    without a value on one side is in none of the three means, and counted in n_failed.
    Intervals are over the groups of the ambiguous questions. Raises `VragError` without
    pairs.
    """
    if pairs.empty:
        raise VragError(
            "ambiguous_less_clear: there are no pairs; both ambiguous and clear questions of one"
            " data set are needed."
        )
    scale = scale_of(values)
    rows = []
    for key, part in values.groupby(list(by), sort=False):
        value = part.drop_duplicates("query_id").set_index("query_id")["value"]
        sides = {side: pairs[side].map(value) for side in ("clear", "ambiguous")}
        difference = sides["ambiguous"] - sides["clear"]
        both = difference.notna()
        for side, of_side in sides.items():
            found = estimate(of_side.where(both).to_numpy(float), pairs["group"], scale=scale)
            rows.append((*key, side, *_numbers(found)))
        found = estimate(difference.to_numpy(float), pairs["group"], scale=scale.differences)
        rows.append((*key, "difference", *_numbers(found)))
    columns = [*by, "split", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def pairs_of_suite(
    suite: Mapping[str, Benchmark], statuses: Mapping[str, pd.DataFrame], *, seed: int = 0
) -> pd.DataFrame:
    """`clear_partners` of each data set, with the column dataset."""
    parts = []
    for name, benchmark in suite.items():
        parts.append(clear_partners(benchmark, statuses[name], seed=seed).assign(dataset=name))
    return pd.concat(parts, ignore_index=True)


def _numbers(found: Estimate) -> tuple[float, float, float, int, int]:
    return found.value, found.ci_low, found.ci_high, found.n, found.n_failed
