"""Prediction-powered accuracy: the judge's bias corrected by a labelled sample.

corrected = mean of the judge's score over all answers + mean of (human − judge)
    over the labelled ones

The judge's mean is precise, since all answers have a verdict, but off by the judge's
bias; the labelled sample estimates that bias, with the doubt that its size leaves.
Angelopoulos et al. (2023), "Prediction-powered inference", Science 382; survey
statistics knows it as the difference estimator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.intervals import Estimate, estimate, resampled_times
from vrag_kit.frames import JUDGED
from vrag_kit.judging.labels import score_of_label
from vrag_kit.judging.scale import Scale, scale_of


def corrected_accuracy(
    judged: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM, seed: int = 0
) -> pd.DataFrame:
    """The judge's mean and the corrected one of every arm: `by`, metric ("judge" or
    "corrected"), value, ci_low, ci_high, n, n_failed, n_labelled.

    `judged` holds all answers, `pairs` the labelled ones as `labelled` gives them.
    Assumed is that `pairs` is a simple random sample of the rows of `judged`, as
    `sample_to_label` draws: answers picked by hand, or left unlabelled because they are
    hard, bias the correction. Each arm is corrected by its own labels only, so that the
    judge may be off differently in each; nothing else is assumed of the judge. Means
    are over answers; the corrected one and its interval are cut to the judge's scale.

    Both parts are resampled together over groups, with the labelled answers in theirs.
    Where all labels of an arm agree with the judge a bootstrap knows no doubt: the
    interval then adds, as independent, how many disagreements as many groups without
    one allow (Clopper-Pearson, as in `estimate`), which for a few labels is a lot.
    Without a label the corrected mean is NaN; so is the interval with labels of one
    group, or all off by the same amount.
    """
    JUDGED.check(judged, ["group", "score"], "corrected_accuracy")
    arm, scale = list(by), scale_of(judged)
    labels = dict(list(pairs.groupby(arm, sort=False)))
    rows = []
    for key, part in judged.groupby(arm, sort=False):
        own = labels.get(key, pairs.iloc[:0])
        judge = estimate(part["score"].to_numpy(), part["group"], scale=scale)
        means = {"judge": (judge.value, judge.ci_low, judge.ci_high)}
        means["corrected"] = _corrected(part, own, judge, scale, seed)
        for metric, (value, low, high) in means.items():
            counts = (judge.n, judge.n_failed, len(own))
            rows.append((*key, metric, value, low, high, *counts))
    counted = ["n", "n_failed", "n_labelled"]
    return pd.DataFrame(rows, columns=[*arm, "metric", "value", "ci_low", "ci_high", *counted])


def _corrected(
    part: pd.DataFrame, own: pd.DataFrame, judge: Estimate, scale: Scale, seed: int
) -> tuple[float, float, float]:
    """(mean, low, high) of an arm's answers `part`, of which `own` are labelled; NaN
    without a label.
    """
    if own.empty:
        return np.nan, np.nan, np.nan
    human = np.array([score_of_label(label, scale) for label in own["human"]])
    off, off_groups = human - own["score"].to_numpy(float), own["group"].to_numpy()
    if len(set(off_groups)) < 2:
        low, high = np.nan, np.nan
    elif np.ptp(off) == 0:
        low, high = _without_doubt(off, off_groups, judge, scale)
    else:
        known = part[part["score"].notna()]
        low, high = _resampled(known, off, off_groups, seed)
    cut = np.clip([judge.value + off.mean(), low, high], scale.worst, scale.best)
    return float(cut[0]), float(cut[1]), float(cut[2])


def _without_doubt(
    off: np.ndarray, off_groups: np.ndarray, judge: Estimate, scale: Scale
) -> tuple[float, float]:
    """The interval where the judge is off by the same amount on every labelled answer:
    its own and that of as many groups without a disagreement; NaN where it is off.
    """
    if off[0] != 0:
        return np.nan, np.nan
    doubt = estimate(off, off_groups, scale=Scale(0.0, scale.width)).ci_high
    below = np.hypot(judge.value - judge.ci_low, doubt)
    above = np.hypot(judge.ci_high - judge.value, doubt)
    return judge.value - below, judge.value + above


def _resampled(
    known: pd.DataFrame, off: np.ndarray, off_groups: np.ndarray, seed: int
) -> tuple[float, float]:
    """The 95 % interval of mean(score) + mean(off), where `off` is human − judge of the
    labelled answers.
    """
    names, member = np.unique(known["group"].to_numpy(), return_inverse=True)
    labelled = np.searchsorted(names, off_groups)
    scores = _by_group(known["score"].to_numpy(float), member, len(names))
    offs = _by_group(off, labelled, len(names))
    means = [
        _means(times, *scores) + _means(times, *offs) for times in resampled_times(len(names), seed)
    ]
    low, high = np.nanquantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def _by_group(values: np.ndarray, member: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(sum, number) of the values of each of `n` groups."""
    sums = np.bincount(member, weights=values, minlength=n)
    return sums, np.bincount(member, minlength=n)


def _means(times: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The mean in each resample; NaN where none of its groups has a value."""
    drawn = times @ sizes
    means = np.full(len(drawn), np.nan)
    np.divide(times @ sums, drawn, out=means, where=drawn > 0)
    return means
