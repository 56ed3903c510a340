"""Several models at once: every pair with simultaneous intervals, and the ranks these allow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import per_query


def all_pairs(
    judged: pd.DataFrame, *, arm: str = "model", by: Sequence[str] = ("setting", "k")
) -> pd.DataFrame:
    """Difference a − b of the mean scores of every two arms, paired over the queries that both
    have: `by`, metric, a, b, value, ci_low, ci_high, n, n_failed, p, p_holm. One arm has no pairs.

    `judged` are judged answers. With m pairs of arms each interval has the level 1 − 0.05 / m
    (Bonferroni): in at least 95 % of samples all intervals of a cell of `by` contain the true
    differences. p_holm corrects for the pairs of a cell. The rest is as in `paired_differences`.
    """
    values = per_query(judged, by=[arm, *by])
    pairs = list(combinations(values[arm].unique(), 2))
    tables = [
        paired_differences(
            values[values[arm].isin(pair)],
            arm=arm,
            by=by,
            baseline=pair[1],
            level=1 - 0.05 / len(pairs),
        )
        for pair in pairs
    ]
    columns = [*by, "metric", "a", "b", "value", "ci_low", "ci_high", "n", "n_failed", "p"]
    if not tables:
        return pd.DataFrame(columns=[*columns, "p_holm"])
    table = pd.concat(tables, ignore_index=True).assign(metric="accuracy")
    table = table.rename(columns={arm: "a", "baseline": "b"})[columns]
    return table.assign(p_holm=holm_by_family(table, by))


def rank_intervals(pairs: pd.DataFrame, *, by: Sequence[str] = ("setting", "k")) -> pd.DataFrame:
    """The ranks that each arm may have, 1 for the best: `by`, arm, rank_low, rank_high, n_arms.

    `pairs` come from `all_pairs`. An arm comes after those that its intervals show to be better,
    and before those that they show to be worse. As the intervals are simultaneous, so are the ranks
    of a cell: all true ones lie in them in at least 95 % of samples.

    Klein, Wright & Wieczorek (2020), "A joint confidence region for an overall ranking of
    populations", Journal of the Royal Statistical Society C 69(3).
    """
    other_way = pairs.rename(columns={"a": "b", "b": "a", "ci_low": "ci_high", "ci_high": "ci_low"})
    other_way[["ci_low", "ci_high"]] *= -1
    both = pd.concat([pairs, other_way])
    both = both.assign(better=both["ci_high"] < 0, worse=both["ci_low"] > 0)
    cells = both.groupby([*by, "a"], sort=False)
    ranks = cells.agg(rank_low=("better", "sum"), worse=("worse", "sum"), n_arms=("b", "size"))
    ranks = ranks.assign(rank_low=ranks["rank_low"] + 1, n_arms=ranks["n_arms"] + 1)
    ranks["rank_high"] = ranks["n_arms"] - ranks["worse"]
    ranks = ranks.rename_axis(index={"a": "arm"}).reset_index()
    return ranks[[*by, "arm", "rank_low", "rank_high", "n_arms"]]
