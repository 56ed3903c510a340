"""Accuracy corrected for the judge's bias by a labelled sample: prediction-powered
inference.

    corrected = mean of the judge's score over all answers + mean of (human − judge)
    over the labelled ones

The judge's mean is precise, since all answers have a verdict, but off by the judge's
bias; the labelled sample estimates that bias, with the doubt that its size leaves.
Angelopoulos et al. (2023), "Prediction-powered inference", Science 382; survey
statistics knows it as the difference estimator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.intervals import Estimate, estimate, resampled_times
from vrag_kit.judging.labels import LABELS


def corrected_accuracy(
    judged: pd.DataFrame,
    pairs: pd.DataFrame,
    groups: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
    seed: int = 0,
) -> pd.DataFrame:
    """The judge's mean and the corrected one of every arm: `by`, metric ("judge" or
    "corrected"), value, ci_low, ci_high, n, n_failed, n_labelled.

    `judged` holds all answers, `pairs` the labelled ones as `labelled` gives them.
    Assumed is that `pairs` is a simple random sample of the rows of `judged`, as
    `sample_to_label` draws: answers picked by hand, or left unlabelled because they are
    hard, bias the correction. Each arm is corrected by its own labels only, so that the
    judge may be off differently in each; nothing else is assumed of the judge. Means
    are over answers; the corrected one and its interval are cut to [0, 1].

    Both parts are resampled together over groups, with the labelled answers in theirs.
    Where all labels of an arm agree with the judge a bootstrap knows no doubt: the
    interval then adds, as independent, how many disagreements as many groups without
    one allow (Clopper-Pearson, as in `estimate`), which for a few labels is a lot.
    Without a label the corrected mean is NaN; so is the interval with labels of one
    group, or all off by the same amount.
    """
    labels = dict(list(pairs.groupby(list(by), sort=False)))
    rows = []
    for key, part in judged.groupby(list(by), sort=False):
        known, own = part[part["score"].notna()], labels.get(key, pairs.iloc[:0])
        judge = estimate(
            part["score"].to_numpy(), [groups[query_id] for query_id in part["query_id"]], seed=seed
        )
        off = np.array([LABELS[label] for label in own["human"]]) - own["score"].to_numpy(float)
        low, high = _interval(
            known["score"].to_numpy(),
            known["query_id"].map(groups).to_numpy(),
            off,
            own["group"].to_numpy(),
            judge,
            seed,
        )
        rows.append(
            (
                *key,
                "judge",
                judge.value,
                judge.ci_low,
                judge.ci_high,
                judge.n,
                judge.n_failed,
                len(own),
            )
        )
        corrected = np.clip([judge.value + off.mean() if len(own) else np.nan, low, high], 0.0, 1.0)
        rows.append((*key, "corrected", *corrected, judge.n, judge.n_failed, len(own)))
    return pd.DataFrame(
        rows, columns=[*by, "metric", "value", "ci_low", "ci_high", "n", "n_failed", "n_labelled"]
    )


def _interval(
    scores: np.ndarray,
    groups: np.ndarray,
    off: np.ndarray,
    off_groups: np.ndarray,
    judge: Estimate,
    seed: int,
) -> tuple[float, float]:
    """The 95 % interval of mean(scores) + mean(off), where `off` is human − judge of
    the labelled answers.
    """
    if len(set(off_groups)) < 2:
        return np.nan, np.nan
    if np.ptp(off) == 0:
        doubt = estimate(off, off_groups, seed=seed).ci_high if off[0] == 0 else np.nan
        value = judge.value + off[0]
        return value - math.hypot(judge.value - judge.ci_low, doubt), value + math.hypot(
            judge.ci_high - judge.value, doubt
        )
    names = np.unique(groups)
    times = resampled_times(len(names), seed)

    def mean(values: np.ndarray, of: np.ndarray) -> np.ndarray:
        member = np.searchsorted(names, of)
        drawn = times @ np.bincount(member, minlength=len(names))
        return np.divide(
            times @ np.bincount(member, weights=values, minlength=len(names)),
            drawn,
            out=np.full(len(drawn), np.nan),
            where=drawn > 0,
        )

    low, high = np.nanquantile(mean(scores, groups) + mean(off, off_groups), [0.025, 0.975])
    return float(low), float(high)
