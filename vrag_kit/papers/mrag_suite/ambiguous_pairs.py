"""Ambiguous questions matched with similar clear ones (Table 8), compared as pairs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import cluster_difference
from vrag_kit.analysis.estimates import estimate
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS, CLEAR
from vrag_kit.types import Benchmark, ordered


def match_clear_questions(
    benchmark: Benchmark,
    statuses: pd.DataFrame,
    memorised: Mapping[str, Collection[str]] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Matches each ambiguous question with a clear one of the same data set. Columns: ambiguous,
    clear, group and clear_group (of either question), words_apart.

    `statuses` has query_id and status. If `memorised` gives the groups in each model's training
    data (`trained_groups`), partners agree in that. Partners have the nearest number of words, and
    are used once each; the ambiguous questions choose in an order by hash, which also breaks ties.
    Those for which none is left have no pair. The paper calls its clear questions "matched", or
    "random", without saying how.
    """
    status = statuses.set_index("query_id")["status"]
    groups = benchmark.groups
    length = {name: len(query.text.split()) for name, query in benchmark.queries.items()}
    knows = {
        name: [groups[name] in of_model for of_model in (memorised or {}).values()]
        for name in length
    }
    free = ordered(status.index[status == CLEAR], seed, "clear partner")
    rows = []
    for name in ordered(status.index[status == AMBIGUOUS], seed, "ambiguous"):
        alike = [other for other in free if knows[other] == knows[name]]
        if not alike:
            continue
        partner = min(alike, key=lambda other: abs(length[other] - length[name]))
        free.remove(partner)
        apart = abs(length[partner] - length[name])
        rows.append((name, partner, groups[name], groups[partner], apart))
    columns = ["ambiguous", "clear", "group", "clear_group", "words_apart"]
    return pd.DataFrame(rows, columns=columns)


def ambiguous_minus_clear(
    values: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Computes means over the pairs: `by`, split ("clear", "ambiguous", "difference"), value,
    ci_low, ci_high, n (pairs), n_failed, p (of the difference; NaN for its sides).

    `values` come from `per_query` (query_id, value, score_min and score_max, `by`). A pair without
    a value on one side is in none of the three means, and counted in n_failed; one without rows on
    both sides, as in another stratum, is not counted.

    Each side's interval is over its own groups, and the difference's over those of both
    (`cluster_difference`): a group may have questions on either side. Matching by length is
    ignored: a correlation of partners would only narrow the interval. Raises `VragError` without
    pairs.
    """
    if pairs.empty:
        raise VragError(
            "ambiguous_minus_clear: there are no pairs; both ambiguous and clear questions of one"
            " data set are needed."
        )
    scale = scale_of(values)
    rows = []
    for key, part in values.groupby(list(by), sort=False):
        value = part.drop_duplicates("query_id").set_index("query_id")["value"]
        asked = pairs[pairs["clear"].isin(value.index) & pairs["ambiguous"].isin(value.index)]
        clear, ambiguous = asked["clear"].map(value), asked["ambiguous"].map(value)
        both = (clear.notna() & ambiguous.notna()).to_numpy()
        counts = int(both.sum()), int((~both).sum())
        sides = {"clear": (clear, "clear_group"), "ambiguous": (ambiguous, "group")}
        for side, (of_side, group) in sides.items():
            found = estimate(of_side[both].to_numpy(float), asked[group][both], scale=scale)
            rows.append((*key, side, found.value, found.ci_low, found.ci_high, *counts, math.nan))
        if not both.any():
            rows.append((*key, "difference", *[math.nan] * 3, *counts, math.nan))
            continue
        joined = pd.concat([ambiguous[both], clear[both]]).to_numpy(float)
        groups = pd.concat([asked["group"][both], asked["clear_group"][both]])
        first = np.arange(len(joined)) < counts[0]
        difference = cluster_difference(joined, groups, first, scale)
        numbers = (difference.value, *difference.interval(), *counts, difference.p_value())
        rows.append((*key, "difference", *numbers))
    columns = [*by, "split", "value", "ci_low", "ci_high", "n", "n_failed", "p"]
    return pd.DataFrame(rows, columns=columns)


def match_suite_questions(
    suite: Mapping[str, Benchmark],
    statuses: Mapping[str, pd.DataFrame],
    memorised: Mapping[str, Mapping[str, Collection[str]]] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Runs `match_clear_questions` on each data set and adds the column dataset; `memorised` is by
    data set.
    """
    parts = []
    for name, benchmark in suite.items():
        of_set = (memorised or {}).get(name)
        pairs = match_clear_questions(benchmark, statuses[name], of_set, seed=seed)
        parts.append(pairs.assign(dataset=name))
    return pd.concat(parts, ignore_index=True)
