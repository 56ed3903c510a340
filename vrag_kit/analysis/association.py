"""Association of two columns of judgements, with intervals over clusters.

Everything is computed from counts of pairs of values: a thousand resamples of ten thousand answers
take a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import Estimate, bootstrap_counts
from vrag_kit.errors import VragError

RESAMPLES = 1000
_LEVEL = 0.95


def association(
    x: Sequence[float] | np.ndarray | pd.Series,
    y: Sequence[float] | np.ndarray | pd.Series,
    groups: Sequence[str] | pd.Series,
    *,
    measure: str,
    seed: int = 0,
) -> Estimate:
    """Association of two paired columns in [−1, 1], with a 95 % percentile
    bootstrap interval over `groups`.

    `measure` is "kappa" (Cohen's, for categories), "spearman" (rank correlation, ties share their
    mean rank) or "kendall" (tau-b). A pair with a NaN is left out and counted in n_failed. The
    value is NaN when a column never changes (for kappa: when both hold one and the same value).
    Whole groups are resampled with replacement, 1,000 times; draws without a value are left out.
    The interval is NaN for one group, and when all draws have the same value: a bootstrap of
    perfect agreement has no variance. Raises `VragError` for an unknown measure and for different
    lengths.
    """
    if measure not in MEASURES:
        raise VragError(f"there is no measure {measure!r}; expected one of {', '.join(MEASURES)}.")
    first, second = np.asarray(x, float), np.asarray(y, float)
    names = np.asarray(groups)
    if not len(first) == len(second) == len(names):
        raise VragError(
            f"{len(first)} and {len(second)} values but {len(names)} groups; expected pairs of"
            " values, and one group a pair."
        )
    known = np.isfinite(first) & np.isfinite(second)
    failed = int((~known).sum())
    if not known.any():
        return Estimate(np.nan, np.nan, np.nan, 0, failed)
    counts = _counts(first[known], second[known], names[known], square=measure == "kappa")
    value = float(MEASURES[measure](counts.sum(axis=0)[None])[0])
    resamples = bootstrap_counts(len(counts), seed, RESAMPLES)
    drawn = np.concatenate([_drawn(measure, times, counts) for times in resamples])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) == 0 or np.ptp(drawn) < 1e-12:
        low, high = np.nan, np.nan
    else:
        low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(value, float(low), float(high), int(known.sum()), failed)


def _drawn(measure: str, times: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The measure in each of some resamples, whose groups were drawn so many `times`."""
    tables = times @ counts.reshape(len(counts), -1)
    return MEASURES[measure](tables.reshape(-1, *counts.shape[1:]))


def _counts(x: np.ndarray, y: np.ndarray, names: np.ndarray, *, square: bool) -> np.ndarray:
    """Number of pairs by group, value of x and value of y, ascending; shape (groups,
    values of x, values of y). `square`: both sides list the values of x and y.
    """
    of_x = np.unique(np.concatenate([x, y]) if square else x)
    of_y = of_x if square else np.unique(y)
    clusters, member = np.unique(names, return_inverse=True)
    counts = np.zeros((len(clusters), len(of_x), len(of_y)))
    np.add.at(counts, (member, np.searchsorted(of_x, x), np.searchsorted(of_y, y)), 1)
    return counts


# Each measure takes counts of shape (tables, values of x, values of y) and gives one number a
# table.


def _kappa(counts: np.ndarray) -> np.ndarray:
    n = counts.sum(axis=(1, 2))
    agreed = np.trace(counts, axis1=1, axis2=2) / n
    by_chance = (counts.sum(axis=2) * counts.sum(axis=1)).sum(axis=1) / n**2
    return _ratio(agreed - by_chance, 1 - by_chance)


def _spearman(counts: np.ndarray) -> np.ndarray:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    of_x, of_y = _centred_ranks(rows), _centred_ranks(columns)
    together = np.einsum("tij,ti,tj->t", counts, of_x, of_y, optimize=True)
    return _ratio(together, np.sqrt((rows * of_x**2).sum(axis=1) * (columns * of_y**2).sum(axis=1)))


def _centred_ranks(totals: np.ndarray) -> np.ndarray:
    """Mean rank of each value, less the mean of all ranks."""
    middle: np.ndarray = totals.sum(axis=1, keepdims=True) / 2
    ranks: np.ndarray = totals.cumsum(axis=1) - totals / 2 - middle
    return ranks


def _kendall(counts: np.ndarray) -> np.ndarray:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    n = counts.sum(axis=(1, 2))
    smaller_x = counts.cumsum(axis=1) - counts  # pairs with a smaller x, by y
    smaller_both = smaller_x.cumsum(axis=2) - smaller_x
    smaller_x_larger_y = smaller_x.sum(axis=2, keepdims=True) - smaller_x.cumsum(axis=2)
    in_order = (counts * (smaller_both - smaller_x_larger_y)).sum(axis=(1, 2))
    untied = [(n**2 - (totals**2).sum(axis=1)) / 2 for totals in (rows, columns)]
    return _ratio(in_order, np.sqrt(untied[0] * untied[1]))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """NaN where the denominator is 0 but for rounding."""
    ratios = np.full(len(above), np.nan)
    np.divide(above, below, out=ratios, where=below > 1e-12)
    return ratios


MEASURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "kappa": _kappa,
    "spearman": _spearman,
    "kendall": _kendall,
}
