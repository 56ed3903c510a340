"""Generalised clue utilisation efficiency (gCUE), with Fieller intervals, where a clue
helps.

As section 5.3 of Visual-RAG defines it:

gCUE(k; λ) = (A_k − B) / (A_GT − B),   B = λ A_Z + (1 − λ) A_NC

A_k is the 1-in-k accuracy, A_GT that of one clue alone, A_Z zero-shot, A_NC with one non-clue. 1
means that the whole benefit of the clue remains among k − 1 distractors, 0 that none is. Where the
clue has no benefit the ratio is meaningless: it is reported only where A_GT − B is above 0 by its
interval, which is then enough for a bounded interval of the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import Estimate, clustered_moments, estimate
from vrag_kit.analysis.means import per_query
from vrag_kit.analysis.report_tables import format_ci_bound
from vrag_kit.judging.scale import Scale, scale_of

LAMBDAS = (0.0, 0.5, 1.0)
NO_HELP = "clue does not help"
UNSURE = "clue may not help"
_FIXED = {"gt_clue": "a_gt", "zero_shot": "a_zero_shot", "non_clue": "a_non_clue"}
_ARMS = {"one_in_k": "a_k", **_FIXED}
_ZERO = 1e-12  # below this a difference of accuracies is rounding


class Ratio(NamedTuple):
    """A ratio of two means and its interval."""

    value: float  # NaN where the denominator may be 0
    ci_low: float  # NaN where it cannot be told
    ci_high: float


_UNKNOWN = Ratio(math.nan, math.nan, math.nan)


def fieller(
    numerator: Sequence[float] | np.ndarray | pd.Series,
    denominator: Sequence[float] | np.ndarray | pd.Series,
    groups: Sequence[str] | np.ndarray | pd.Series,
    *,
    level: float = 0.95,
) -> Ratio:
    """Ratio of the means of two paired samples, with Fieller's interval over clusters.

    It contains every r for which mean(numerator − r · denominator) = 0 is not rejected by a t test
    with the variance and degrees of freedom of `clustered_moments`. Value and interval are NaN
    where the denominator's mean may be 0 by the same test, for the set would then be unbounded; and
    for one cluster, or none. Only the interval is NaN where one sample is a constant multiple of
    the other: nothing then varies, and only the ends of a scale bound the error of the ratio
    (`share_of_benefit`).

    Fieller (1954), "Some problems in interval estimation", J. R. Stat. Soc. B 16(2).
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    both = np.column_stack([numerator, denominator]).astype(float)
    if len(both) == 0:
        return _UNKNOWN
    found = clustered_moments(both, np.asarray(groups))
    t = float(stdtrit(found.freedom, (1 + level) / 2))
    # a r² − 2 b r + c ≤ 0
    (c, b), (_, a) = np.outer(found.means, found.means) - t**2 * found.covariance
    if not a > _ZERO**2:  # NaN for one cluster
        return _UNKNOWN
    ratio = float(found.means[0] / found.means[1])
    if np.allclose(both[:, 0], ratio * both[:, 1], rtol=0, atol=_ZERO):
        return Ratio(ratio, math.nan, math.nan)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Ratio(ratio, float((b - root) / a), float((b + root) / a))


def share_of_benefit(
    gained: pd.Series, benefit: pd.Series, scale: Scale, *, level: float = 0.95
) -> tuple[Ratio, Estimate]:
    """The mean of `gained` as a share of the mean of `benefit`, and the latter mean, both with
    intervals of `level`.

    The two are paired differences of scores by query, on `scale`, with the index level `group`,
    without NaN. Where the benefit is not above 0 by its interval the ratio is NaN. Where each gain
    is the same multiple r of its benefit, unseen groups may still differ, by up to 1 + |r| times
    the scale: as many as `estimate` allows for, over the smallest benefit in its interval.
    """
    groups = benefit.index.get_level_values("group").to_numpy()
    whole = estimate(benefit, groups, level=level, scale=scale)
    if not whole.ci_low > 0:
        return _UNKNOWN, whole
    ratio = fieller(gained, benefit, groups, level=level)
    if not math.isnan(ratio.ci_low):
        return ratio, whole
    widest = Scale(scale.worst * (1 + abs(ratio.value)), scale.best * (1 + abs(ratio.value)))
    unseen = estimate(np.zeros(len(groups)), groups, level=level, scale=widest)
    ends = (ratio.value + end / whole.ci_low for end in (unseen.ci_low, unseen.ci_high))
    return Ratio(ratio.value, *ends), whole


def gcue(
    judged: pd.DataFrame, *, by: Sequence[str] = ("model",), lambdas: Sequence[float] = LAMBDAS
) -> pd.DataFrame:
    """gCUE of every `by`, k and λ, over the queries that have a verdict in all four arms.

    Columns: `by`, k, lambda, value, ci_low, ci_high, interval (in words), half_width, the four
    accuracies on the judge's scale, denominator (A_GT − B) with its interval denominator_low and
    denominator_high, n queries, n_failed answers of these arms without a verdict. Where the
    denominator is not above 0 by its interval there is no ratio: value and its interval are NaN,
    and `interval` says why: `NO_HELP` where the denominator's interval ends at or below 0, else
    `UNSURE`, as with few groups. `judged` holds the settings zero_shot, non_clue, gt_clue and
    one_in_k; KeyError names one that is missing.
    """
    rows: list[dict[str, object]] = []
    for key, part in judged.groupby(list(by), sort=False):
        for k in np.unique(part.set_index("setting").loc[["one_in_k"], "k"]):
            other_k = part["setting"].eq("one_in_k") & part["k"].ne(k)
            used = part[part["setting"].isin(_ARMS) & ~other_k]
            arms = per_query(used, by=["setting"])
            table = arms.pivot(index=["query_id", "group"], columns="setting", values="value")
            table = table[list(_ARMS)].dropna().rename(columns=_ARMS)
            for lam in lambdas:
                arm = dict(zip(by, key, strict=True)) | {"k": k, "lambda": lam}
                rows.append(arm | _row(table, lam, scale_of(judged).differences))
                rows[-1]["n_failed"] = used["score"].isna().sum()
    return pd.DataFrame(rows)


def _row(table: pd.DataFrame, lam: float, differences: Scale) -> dict[str, object]:
    """The columns of gCUE after k and λ; differences of scores lie on `differences`."""
    less = table.sub(_baseline(table, lam), axis=0)
    ratio, benefit = share_of_benefit(less["a_k"], less["a_gt"], differences)
    words = f"[{format_ci_bound(ratio.ci_low, 2)}, {format_ci_bound(ratio.ci_high, 2)}]"
    if math.isnan(ratio.value):
        words = NO_HELP if benefit.ci_high <= 0 else UNSURE
    return {
        **ratio._asdict(),
        "interval": words,
        "half_width": (ratio.ci_high - ratio.ci_low) / 2,
        **table.mean(),
        "denominator": benefit.value,
        "denominator_low": benefit.ci_low,
        "denominator_high": benefit.ci_high,
        "n": len(table),
    }


def _baseline(arms: pd.DataFrame, lam: float | pd.Series) -> pd.Series:
    return lam * arms["a_zero_shot"] + (1 - lam) * arms["a_non_clue"]


def published_gcue(table: pd.DataFrame, *, lambdas: Sequence[float] = LAMBDAS) -> pd.DataFrame:
    """Computes gCUE from published accuracies, `published("visual_rag", table=3)`. Columns are
    those of `gcue` but for the intervals, which the paper's means do not allow. The value is NaN
    where A_GT equals the baseline up to rounding.
    """
    table = pd.concat([part for _, part in table.groupby("model", sort=False)])
    means = table.assign(arm=table["setting"].map(_ARMS), a_k=table["value"] / 100)
    fixed = means[means["setting"].isin(_FIXED)]
    curves = means.loc[means["arm"] == "a_k", ["model", "k", "a_k", "n"]]
    curves = curves.join(fixed.pivot(index="model", columns="arm", values="a_k"), on="model")
    curves = curves.merge(pd.Series(lambdas, name="lambda"), how="cross")
    baseline = _baseline(curves, curves["lambda"])
    benefit = curves["a_gt"] - baseline
    value = (curves["a_k"] - baseline) / benefit.where(benefit.abs() > _ZERO)
    return curves.assign(value=value, denominator=benefit, interval="", n_failed=0)
