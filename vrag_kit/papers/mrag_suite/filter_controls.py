"""Controls for the effect of filtering on a model's score: the filter without the evaluated model,
and a random drop of the same size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import cluster_bootstrap
from vrag_kit.analysis.means import per_query
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_suite.filter import FilterRules, filter_decisions
from vrag_kit.types import Benchmark, ordered

FILTERED = "filtered"
LEFT_OUT = "filtered, model left out"
AT_RANDOM = "random drop (control)"
DRAWS = 200
"""Number of random drops."""
_RESAMPLES = 2000
Decide = Callable[[frozenset[str]], pd.DataFrame | None]
"""Function from excluded models to the decisions (`filter_decisions`) of the others; None if too
few others are left.
"""


def leave_out_filter(
    benchmark: Benchmark,
    closed_book: pd.DataFrame,
    rules: FilterRules | None = None,
    *,
    baseline: pd.DataFrame | None = None,
) -> Decide:
    """Returns the decision function of `filter_controls`: `filter_decisions` without the answers of
    the excluded models, in closed book and baseline; None if fewer models are left than
    `min_votes`.
    """
    rules = rules or FilterRules()

    def decide(left_out: frozenset[str]) -> pd.DataFrame | None:
        others = closed_book[~closed_book["model"].isin(left_out)]
        if others["model"].nunique() < rules.min_votes:
            return None
        of_others = None if baseline is None else baseline[~baseline["model"].isin(left_out)]
        return filter_decisions(benchmark, others, rules, baseline=of_others)

    return decide


def filter_controls(
    judged: pd.DataFrame,
    decide: Decide,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Computes the filtered mean minus the full mean of every evaluated model. Columns: model,
    control (the three above), value, ci_low, ci_high, n (questions kept), n_full, n_failed,
    baseline ("all questions"); on the judge's scale.

    `judged` are the answers to all questions in one arm. For the filters the interval is a
    percentile bootstrap over groups of the difference of means; NaN for one group, and if all
    resamples agree, as for equal scores or identical groups, where it would be falsely certain; 0
    to 0 if nothing is dropped. The random drop has the filter's number of questions of each domain;
    value is the mean over `draws` drops, near 0 by construction, and the interval holds 95 % of
    them: the effect of chance for a drop of this size. Questions without a score count in n_failed
    and in no mean. If too few others are left to decide, or no question of `judged` with a score is
    kept, as in a memorised stratum, value is NaN and n is 0. Raises `VragError` if no question at
    all is kept, all models together are too few, or a model has answers in several arms.
    """
    values = per_query(judged, by=["model"])
    arms = judged.groupby("model")[["setting", "k"]].nunique().max(axis=1)
    if (arms > 1).any():
        raise VragError(
            f"filter_controls: {arms.idxmax()!r} was asked in several arms; take those of one"
            " setting and k."
        )
    everybody = decide(frozenset())
    if everybody is None:
        raise VragError(
            "filter_controls: fewer models answered without evidence than votes asks for. Name more"
            " filter_models, or ask for fewer votes."
        )
    if everybody["dropped"].all():
        raise VragError(
            "filter_controls: the filter drops every question. Ask for more votes or confidence, or"
            " a smaller drop_share."
        )
    asked = everybody[everybody["query_id"].isin(values["query_id"])]
    drops = [_drawn(asked, seed, draw) for draw in range(draws)]
    rows: list[tuple[object, ...]] = []
    for model, part in values.groupby("model", sort=False):
        known = part.dropna(subset="value").reset_index(drop=True)
        failed = len(part) - len(known)
        others = decide(frozenset({str(model)}))
        for control, decisions in ((FILTERED, everybody), (LEFT_OUT, others)):
            if decisions is None:
                rows.append((model, control, *[np.nan] * 3, 0, len(known), failed))
                continue
            dropped = set(decisions[decisions["dropped"]]["query_id"])
            stays = ~known["query_id"].isin(dropped).to_numpy()
            rows.append((model, control, *_change(known, stays, seed), len(known), failed))
        rows.append((model, AT_RANDOM, *_by_chance(known, drops), len(known), failed))
    columns = ["model", "control", "value", "ci_low", "ci_high", "n", "n_full", "n_failed"]
    return pd.DataFrame(rows, columns=columns).assign(baseline=ALL)


def _change(known: pd.DataFrame, stays: np.ndarray, seed: int) -> tuple[float, float, float, int]:
    """Mean over what stays less the mean over all, its interval over groups, and how many
    stay.
    """
    if not stays.any():
        return np.nan, np.nan, np.nan, 0
    values = known["value"].to_numpy(float)
    names, member = np.unique(known["group"].to_numpy(str), return_inverse=True)
    sums = np.zeros((len(names), 4))  # of a group: what stays, its number, all, their number
    columns = np.stack([values * stays, stays, values, np.ones(len(values))], axis=1)
    np.add.at(sums, member, columns)
    change = cluster_bootstrap(sums, _mean_change, seed=seed, resamples=_RESAMPLES)
    if len(names) == 1 or not np.ptp(values):
        change = (change[0], np.nan, np.nan)
    elif stays.all():
        change = (0.0, 0.0, 0.0)
    return *change, int(stays.sum())


def _mean_change(sums: np.ndarray) -> np.ndarray:
    """The change of the mean from the four sums of each resample; NaN where nothing stays."""
    with np.errstate(invalid="ignore"):
        change: np.ndarray = sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3]
    return change


def _drawn(decisions: pd.DataFrame, seed: int, draw: int) -> frozenset[str]:
    """As many questions of each domain as the decisions drop, drawn by hash."""
    dropped: set[str] = set()
    for _, part in decisions.groupby("domain", sort=False):
        many = int(part["dropped"].sum())
        dropped |= set(ordered(part["query_id"], seed, "random drop", draw)[:many])
    return frozenset(dropped)


def _by_chance(known: pd.DataFrame, drops: list[frozenset[str]]) -> tuple[float, float, float, int]:
    values = known["value"].to_numpy(float)
    changes, sizes = [], []
    for dropped in drops:
        stays = ~known["query_id"].isin(dropped).to_numpy()
        if stays.any():
            changes.append(values[stays].mean() - values.mean())
            sizes.append(stays.sum())
    if not changes:
        return np.nan, np.nan, np.nan, 0
    low, high = np.quantile(changes, [0.025, 0.975])
    return float(np.mean(changes).round(12)), float(low), float(high), int(np.median(sizes))
