"""Differences between arms, paired over queries, with clusters kept together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.intervals import Estimate, block_sizes, estimate
from vrag_kit.errors import VragError
from vrag_kit.frames import VALUES
from vrag_kit.judging.scale import Scale, scale_of

FLIPS = 20_000


def compare(
    per_query: pd.DataFrame, *, arm: str, by: Sequence[str], baseline: str, seed: int = 0
) -> pd.DataFrame:
    """Difference of every arm to `baseline` on the queries that both have: arm, `by`,
    value, ci_low, ci_high, n, p, p_holm.

    p is two-sided, by flipping the signs of whole groups (20,000 random flips, plus the
    observed one); p_holm corrects for all rows of the table. Where no query differs,
    the interval is what as many groups without a success allow, in both directions.
    Columns needed in `per_query`: query_id, group, value, `arm` and `by`, and worst and
    best where the values are on another scale than [0, 1].
    """
    VALUES.check(per_query, ["query_id", "group", "value"], "compare")
    keys = [*by, "query_id", "group"]
    wide = per_query.pivot_table(index=keys, columns=arm, values="value", sort=False)
    if len(per_query) and baseline not in wide.columns:
        raise VragError(
            f"no query has a value for {baseline!r}, so nothing can be compared with it; found"
            f" {', '.join(map(str, wide.columns)) or 'none'}."
        )
    differences = Scale(0.0, scale_of(per_query).width)
    rows = []
    for name in [column for column in wide.columns if column != baseline]:
        pairs = wide[[name, baseline]].dropna().reset_index()
        pairs = pairs.assign(difference=pairs[name] - pairs[baseline])
        for key, part in pairs.groupby(list(by), sort=False):
            found = difference_of(part["difference"], part["group"], differences, seed=seed)
            p = _sign_flip(part["difference"].to_numpy(), part["group"].to_numpy(), seed)
            rows.append((name, *key, found.value, found.ci_low, found.ci_high, found.n, p))
    table = pd.DataFrame(rows, columns=[arm, *by, "value", "ci_low", "ci_high", "n", "p"])
    return table.assign(p_holm=holm(table["p"].to_numpy(float)))


def difference_of(
    differences: pd.Series, groups: pd.Series, scale: Scale, *, seed: int = 0
) -> Estimate:
    """`estimate` of differences, whose size is on `scale`, from 0 to the largest.

    Where none differs from 0, the interval reaches as far in either direction as
    groups without any difference allow.
    """
    values = differences.to_numpy(float)
    falls = len(values) > 0 and bool((values == -scale.best).all())
    if falls:  # all as far below as can be: `estimate` knows the upper end
        result = estimate(-values, groups, seed=seed, scale=scale)
        return Estimate(-result.value, -result.ci_high, -result.ci_low, result.n, result.n_failed)
    result = estimate(values, groups, seed=seed, scale=scale)
    if values.any():
        return result
    return Estimate(result.value, -result.ci_high, result.ci_high, result.n, result.n_failed)


def holm(p: np.ndarray) -> np.ndarray:
    """The p-values corrected for their number, step down: the i-th smallest of m times
    (m − i + 1), at least as large as those before it, at most 1.

    Holm (1979), Scandinavian Journal of Statistics 6(2).
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def _sign_flip(differences: np.ndarray, clusters: np.ndarray, seed: int) -> float:
    """Two-sided p of a mean difference of 0, flipping the sign of each cluster's sum."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=differences)
    stream, observed = np.random.default_rng(seed), abs(sums.sum()) - 1e-12
    as_far = 0
    for rows in block_sizes(FLIPS, len(sums)):
        signs = stream.choice([-1.0, 1.0], size=(rows, len(sums)))
        as_far += int(np.sum(np.abs(signs @ sums) >= observed))
    return (1 + as_far) / (FLIPS + 1)
