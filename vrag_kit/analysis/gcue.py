"""Generalised clue utilisation efficiency (gCUE, Visual-RAG section 5.3), with Fieller
intervals.

    gCUE(k; λ) = (A_k − B) / (A_GT − B),   B = λ A_Z + (1 − λ) A_NC

A_k is the 1-in-k accuracy, A_GT that of one clue alone, A_Z zero-shot, A_NC with one
non-clue. 1 means that the whole benefit of the clue is left among k − 1 distractors, 0
that none is. It is a ratio: when the clue helps little, its denominator is near 0 and
no data can tell it apart from ±∞. The interval then is unbounded, and is shown so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from vrag_kit.analysis.accuracy import per_query
from vrag_kit.errors import VragError

LAMBDAS = (0.0, 0.5, 1.0)
_ZERO = 1e-12  # below this a difference of accuracies is rounding
COLUMNS = [
    "model",
    "k",
    "lambda",
    "value",
    "ci_low",
    "ci_high",
    "interval",
    "half_width",
    "a_k",
    "a_gt",
    "a_zero_shot",
    "a_non_clue",
    "denominator",
    "n",
]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two means and the values it may have."""

    value: float  # NaN only when the denominator is 0 but for rounding
    ci_low: float  # −inf when the interval is unbounded below
    ci_high: float
    interval: str  # as people write it: "[0.2, 0.9]", "(−∞, 0.1] ∪ [1.4, ∞)", "(−∞, ∞)"


def gcue_of(a_k: float, a_gt: float, a_zero_shot: float, a_non_clue: float, lam: float) -> float:
    """gCUE from four accuracies in any one unit; any real number, NaN when A_GT equals
    the baseline B but for rounding.
    """
    baseline = lam * a_zero_shot + (1 - lam) * a_non_clue
    return (
        (a_k - baseline) / (a_gt - baseline)
        if abs(a_gt - baseline) > _ZERO * max(1.0, abs(a_gt))
        else math.nan
    )


def fieller(
    numerator: Sequence[float] | np.ndarray,
    denominator: Sequence[float] | np.ndarray,
    groups: Sequence[str],
    *,
    level: float = 0.95,
) -> Ratio:
    """Ratio of the means of two paired samples, with Fieller's confidence set over
    clusters.

    The set holds every r for which mean(numerator − r · denominator) = 0 is not
    rejected by a t test with (clusters − 1) degrees of freedom on cluster sums. It is
    an interval when the denominator differs from 0 at this level, otherwise two rays or
    the whole line.

    Fieller (1954), "Some problems in interval estimation", J. R. Stat. Soc. B 16(2).
    """
    x, y = np.asarray(numerator, float), np.asarray(denominator, float)
    clusters, member = np.unique(np.asarray(groups), return_inverse=True)
    if len(x) == 0 or abs(y.mean()) <= _ZERO:
        return Ratio(math.nan, -math.inf, math.inf, "undefined")
    value, g = float(x.mean() / y.mean()), len(clusters)
    if g < 2:
        return Ratio(value, -math.inf, math.inf, "(−∞, ∞)")
    rx, ry = (np.bincount(member, weights=v - v.mean()) for v in (x, y))
    scale = g / (g - 1) / len(x) ** 2
    vxx, vxy, vyy = scale * (rx @ rx), scale * (rx @ ry), scale * (ry @ ry)
    t2 = float(stats.t.ppf((1 + level) / 2, g - 1)) ** 2
    a, b, c = (
        y.mean() ** 2 - t2 * vyy,
        x.mean() * y.mean() - t2 * vxy,
        x.mean() ** 2 - t2 * vxx,
    )  # a r² − 2 b r + c ≤ 0
    spread = b * b - a * c
    if a > 0:
        low, high = ((b - math.sqrt(max(spread, 0.0))) / a, (b + math.sqrt(max(spread, 0.0))) / a)
        return Ratio(value, low, high, f"[{low:.2f}, {high:.2f}]")
    if a == 0 or spread < 0:
        return Ratio(value, -math.inf, math.inf, "(−∞, ∞)")
    low, high = sorted(((b - math.sqrt(spread)) / a, (b + math.sqrt(spread)) / a))
    return Ratio(value, -math.inf, math.inf, f"(−∞, {low:.2f}] ∪ [{high:.2f}, ∞)")


def gcue(
    judged: pd.DataFrame, groups: Mapping[str, str], *, lambdas: Sequence[float] = LAMBDAS
) -> pd.DataFrame:
    """gCUE of every model, k and λ, all four accuracies on the queries that have a
    verdict in all four arms.

    Columns: model, k, lambda, value, ci_low, ci_high, interval, half_width (infinite
    when unbounded), the four accuracies in [0, 1], denominator (A_GT − B), n queries.
    `judged` holds the settings zero_shot, non_clue, gt_clue and one_in_k. Raises
    `VragError` when one of them is missing for a model.
    """
    rows: list[tuple[object, ...]] = []
    for model, part in per_query(judged).groupby("model", sort=False):
        found = list(part["setting"].unique())
        if missing := [
            setting
            for setting in ("zero_shot", "non_clue", "gt_clue", "one_in_k")
            if setting not in found
        ]:
            raise VragError(
                f"gCUE of {model} needs the setting {missing[0]!r}, which the answers lack; found"
                f" {', '.join(found)}."
            )
        arms = {
            setting: rows_of.set_index("query_id")["value"]
            for setting, rows_of in part.groupby("setting")
            if setting in ("zero_shot", "non_clue", "gt_clue")
        }
        for k, rows_of in part[part["setting"] == "one_in_k"].groupby("k"):
            table = pd.DataFrame(
                {
                    "a_k": rows_of.set_index("query_id")["value"],
                    "a_gt": arms["gt_clue"],
                    "a_zero_shot": arms["zero_shot"],
                    "a_non_clue": arms["non_clue"],
                }
            ).dropna()
            for lam in lambdas:
                baseline = lam * table["a_zero_shot"] + (1 - lam) * table["a_non_clue"]
                ratio = fieller(
                    table["a_k"] - baseline,
                    table["a_gt"] - baseline,
                    [groups[query_id] for query_id in table.index],
                )
                means = table.mean()
                rows.append(
                    (
                        model,
                        k,
                        lam,
                        ratio.value,
                        ratio.ci_low,
                        ratio.ci_high,
                        ratio.interval,
                        (ratio.ci_high - ratio.ci_low) / 2,
                        *means[["a_k", "a_gt", "a_zero_shot", "a_non_clue"]],
                        means["a_gt"] - baseline.mean(),
                        len(table),
                    )
                )
    return pd.DataFrame(rows, columns=COLUMNS)
