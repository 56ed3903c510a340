"""Two arms on the same queries: an exact p-value of no difference, and the minimum detectable
difference.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pandas as pd

from vrag_kit.judging.scale import Scale

MOST = 2**22
"""The most distinct sums at once: 32 MiB of them."""
_DECIMALS = 6
"""Sums that differ by less are one sum, added in another order."""


def sign_flip_test(differences: np.ndarray, groups: np.ndarray | pd.Series) -> float:
    """Exact two-sided p-value, in (0, 1], of the sign-flip test of `differences` (one per query,
    without NaN). The null hypothesis is that the two arms are exchangeable.

    The sum of each group then has either sign with probability 1/2, whatever its size; p is the
    share of all signs under which the total is at least as far from 0 as observed. Where scores are
    0 or 1 and each query is a group of its own, this is McNemar's exact test: 2 · P(Binomial(flips,
    1/2) ≥ the more frequent direction), at most 1. Without differences p is 1. NaN where sums take
    more than `MOST` values, as with many groups of arbitrary real scores.

    Fisher (1935), The Design of Experiments, section 21; McNemar (1947), Psychometrika
    12(2).
    """
    from scipy.stats import binom

    sums = _sums(differences, groups)
    sizes, counts = np.unique(np.abs(sums)[np.abs(sums) > 0], return_counts=True)
    totals: np.ndarray = np.zeros(1)
    shares: np.ndarray = np.ones(1)
    for size, count in zip(sizes, counts, strict=True):
        if len(totals) * (count + 1) > MOST:
            return math.nan
        positive = np.arange(count + 1)
        moved = totals[:, None] + size * (2 * positive - count)
        totals, place = np.unique(moved.round(_DECIMALS).ravel(), return_inverse=True)
        weights = shares[:, None] * binom.pmf(positive, count, 0.5)
        shares = np.bincount(place, weights.ravel())
    slack = (len(sums) + 1) * 10.0**-_DECIMALS
    return min(1.0, float(shares[np.abs(totals) >= abs(sums.sum()) - slack].sum()))


_POWER = 0.8


def minimum_detectable_difference(
    differences: np.ndarray,
    groups: np.ndarray | pd.Series,
    scale: Scale,
    *,
    level: float = 0.05,
) -> float:
    """The smallest true difference of two means on `scale` that a two-sided paired test at `level`
    detects with a power of 80 %. It assumes as many queries, and as much variation, as in
    `differences` (one per query, without NaN, at least one).

    It is the δ that solves Connor's formula for McNemar's test, n = (z_α √ψ + z_β √(ψ − δ²))² / δ²,
    where ψ is the share of queries that flip; here the mean squared difference, which is the same
    for scores of 0 and 1, as a share of the scale. δ cannot be larger than ψ: where so few flip
    that none would be found, ψ = δ, the smallest δ of flips in one direction alone. n is divided by
    the design effect Σ (sum of a group)² / Σ difference² where that is above 1; without any
    difference, n is the number of groups. NaN where no difference could be found: n below 4, or so
    few groups that even all signs alike, one of 2^(groups − 1) equally likely ways, are not
    significant at `level`.

    Connor (1987), "Sample size for testing differences in proportions for the
    paired-sample design", Biometrics 43(1); Kish (1965), Survey Sampling, section 8.2.
    """
    flips = float(np.mean((differences / scale.width) ** 2))
    sums = _sums(differences / scale.width, groups)
    if 2.0 ** (1 - len(sums)) > level:
        return math.nan
    n = float(len(sums))
    if flips > 0:
        n = len(differences) / max(1.0, float((sums**2).sum()) / (flips * len(differences)))
    of_test = NormalDist().inv_cdf(1 - level / 2)
    of_power = NormalDist().inv_cdf(_POWER)
    rest = n + of_power**2 - of_test**2
    if rest < 0:
        return math.nan
    root = (of_test * math.sqrt(n) + of_power * math.sqrt(rest)) / (n + of_power**2)
    found = root * max(math.sqrt(flips), root)
    return scale.width * found if found <= 1 else math.nan


def _sums(values: np.ndarray, groups: np.ndarray | pd.Series) -> np.ndarray:
    """The sum of each group, so rounded that what should be equal is."""
    _, member = np.unique(np.asarray(groups), return_inverse=True)
    return np.bincount(member, values).round(9)
