"""Generalised clue utilisation efficiency (gCUE), with Fieller intervals.

As section 5.3 of Visual-RAG defines it:

gCUE(k; λ) = (A_k − B) / (A_GT − B),   B = λ A_Z + (1 − λ) A_NC

A_k is the 1-in-k accuracy, A_GT that of one clue alone, A_Z zero-shot, A_NC with one
non-clue. 1 means that the whole benefit of the clue is left among k − 1 distractors, 0
that none is. It is a ratio: when the clue helps little, its denominator is near 0 and
no data can tell it apart from ±∞. The interval then is unbounded, and is shown so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.analysis.accuracy import per_query
from vrag_kit.errors import VragError
from vrag_kit.frames import JUDGED

LAMBDAS = (0.0, 0.5, 1.0)
_FIXED = {"a_zero_shot": "zero_shot", "a_non_clue": "non_clue", "a_gt": "gt_clue"}
_ANYTHING = "(−∞, ∞)"
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
    "n_failed",
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
    if abs(a_gt - baseline) <= _ZERO * max(1.0, abs(a_gt)):
        return math.nan
    return (a_k - baseline) / (a_gt - baseline)


def fieller(
    numerator: Sequence[float] | np.ndarray | pd.Series,
    denominator: Sequence[float] | np.ndarray | pd.Series,
    groups: Sequence[str] | pd.Index,
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
    from scipy.special import stdtrit  # quantiles of Student's t

    x, y = np.asarray(numerator, float), np.asarray(denominator, float)
    clusters, member = np.unique(np.asarray(groups), return_inverse=True)
    if len(x) == 0 or abs(y.mean()) <= _ZERO:
        return Ratio(math.nan, -math.inf, math.inf, "undefined")
    value, g = float(x.mean() / y.mean()), len(clusters)
    if g < 2:
        return Ratio(value, -math.inf, math.inf, _ANYTHING)
    of_x = np.bincount(member, weights=x - x.mean())
    of_y = np.bincount(member, weights=y - y.mean())
    scale = g / (g - 1) / len(x) ** 2
    t2 = float(stdtrit(g - 1, (1 + level) / 2)) ** 2
    # a r² − 2 b r + c ≤ 0
    a = y.mean() ** 2 - t2 * (scale * (of_y @ of_y))
    b = x.mean() * y.mean() - t2 * (scale * (of_x @ of_y))
    c = x.mean() ** 2 - t2 * (scale * (of_x @ of_x))
    spread = b * b - a * c
    if a > 0:
        root = math.sqrt(max(spread, 0.0))
        low, high = (b - root) / a, (b + root) / a
        return Ratio(value, low, high, f"[{low:.2f}, {high:.2f}]")
    if a == 0 or spread < 0:
        return Ratio(value, -math.inf, math.inf, _ANYTHING)
    low, high = sorted(((b - math.sqrt(spread)) / a, (b + math.sqrt(spread)) / a))
    return Ratio(value, -math.inf, math.inf, f"(−∞, {low:.2f}] ∪ [{high:.2f}, ∞)")


def gcue(judged: pd.DataFrame, *, lambdas: Sequence[float] = LAMBDAS) -> pd.DataFrame:
    """gCUE of every model, k and λ, all four accuracies on the queries that have a
    verdict in all four arms.

    Columns: model, k, lambda, value, ci_low, ci_high, interval, half_width (infinite
    when unbounded), the four accuracies on the judge's scale, denominator (A_GT − B), n
    queries, n_failed answers of these arms without a verdict. `judged` holds the
    settings zero_shot, non_clue, gt_clue and one_in_k. Raises `VragError` when one of
    them is missing for a model.
    """
    JUDGED.check(judged, ["model", "setting", "k", "query_id", "group", "score"], "gcue")
    rows: list[tuple[object, ...]] = []
    for model, part in per_query(judged).groupby("model", sort=False):
        arms = _arms(str(model), part)
        for k, of_k in part[part["setting"] == "one_in_k"].groupby("k"):
            table = arms.assign(a_k=_by_query(of_k)).dropna()
            failed = _failed(judged, model, k)
            rows += [(model, k, lam, *_row(table, lam), failed) for lam in lambdas]
    return pd.DataFrame(rows, columns=COLUMNS)


def _arms(model: str, part: pd.DataFrame) -> pd.DataFrame:
    """The accuracies that do not depend on k: a_gt, a_zero_shot, a_non_clue, by query
    and group.
    """
    found = list(part["setting"].unique())
    if missing := [name for name in (*_FIXED.values(), "one_in_k") if name not in found]:
        raise VragError(
            f"gCUE of {model} needs the setting {missing[0]!r}, which the answers lack; found"
            f" {', '.join(found)}."
        )
    return pd.DataFrame(
        {name: _by_query(part[part["setting"] == setting]) for name, setting in _FIXED.items()}
    )


def _failed(judged: pd.DataFrame, model: object, k: object) -> int:
    """Answers of the four arms that have no verdict."""
    arms = judged["setting"].isin(list(_FIXED.values()))
    arms |= (judged["setting"] == "one_in_k") & (judged["k"] == k)
    return int((arms & (judged["model"] == model) & judged["score"].isna()).sum())


def _by_query(part: pd.DataFrame) -> pd.Series:
    return part.set_index(["query_id", "group"])["value"]


def _row(table: pd.DataFrame, lam: float) -> tuple[object, ...]:
    """The columns of gCUE after model, k and λ."""
    baseline = lam * table["a_zero_shot"] + (1 - lam) * table["a_non_clue"]
    gained, possible = table["a_k"] - baseline, table["a_gt"] - baseline
    ratio = fieller(gained, possible, table.index.get_level_values("group"))
    means = table.mean()
    return (
        ratio.value,
        ratio.ci_low,
        ratio.ci_high,
        ratio.interval,
        (ratio.ci_high - ratio.ci_low) / 2,
        *means[["a_k", "a_gt", "a_zero_shot", "a_non_clue"]],
        means["a_gt"] - baseline.mean(),
        len(table),
    )
