"""Is one arm better than another? Paired over queries, with clusters kept together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests

from vrag_kit.analysis.intervals import estimate
from vrag_kit.errors import VragError

FLIPS = 20_000


def compare(
    per_query: pd.DataFrame,
    groups: Mapping[str, str],
    *,
    arm: str,
    by: list[str],
    baseline: str,
    seed: int = 0,
) -> pd.DataFrame:
    """Difference of every arm to `baseline` on the queries that both have: arm, `by`,
    value, ci_low, ci_high, n, p, p_holm.

    p is two-sided, by flipping the signs of whole groups (20,000 random flips, plus the
    observed one); p_holm corrects for all rows of the table. Where no query differs,
    the interval is what as many groups without a success allow, in both directions.
    Columns needed in `per_query`: query_id, value, `arm` and `by`.
    """
    wide = per_query.pivot_table(index=[*by, "query_id"], columns=arm, values="value", sort=False)
    if len(per_query) and baseline not in wide.columns:
        raise VragError(
            f"no query has a value for {baseline!r}, so nothing can be compared with it; found"
            f" {', '.join(map(str, wide.columns)) or 'none'}."
        )
    rows = []
    for name in [column for column in wide.columns if column != baseline]:
        pairs = wide[[name, baseline]].dropna().reset_index()
        for key, part in pairs.assign(difference=pairs[name] - pairs[baseline]).groupby(
            by, sort=False
        ):
            clusters = [groups[query_id] for query_id in part["query_id"]]
            difference = part["difference"].to_numpy()
            sign = -1.0 if (difference == -1).all() else 1.0  # `estimate` knows the bounds 0 and 1
            result = estimate(sign * difference, clusters, seed=seed)
            low, high = sorted((sign * result.ci_low, sign * result.ci_high))
            rows.append(
                (
                    name,
                    *key,
                    sign * result.value,
                    low if difference.any() else -high,
                    high,
                    result.n,
                    _sign_flip(difference, clusters, seed),
                )
            )
    table = pd.DataFrame(rows, columns=[arm, *by, "value", "ci_low", "ci_high", "n", "p"])
    return table.assign(p_holm=multipletests(table["p"], method="holm")[1] if len(table) else [])


def _sign_flip(differences: np.ndarray, clusters: list[str], seed: int) -> float:
    """Two-sided p of a mean difference of 0, flipping the sign of each cluster's sum."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=differences)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(FLIPS, len(sums)))
    return float((1 + np.sum(np.abs(signs @ sums) >= abs(sums.sum()) - 1e-12)) / (FLIPS + 1))
