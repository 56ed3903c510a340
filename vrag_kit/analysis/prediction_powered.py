"""Prediction-powered accuracy: the judge's bias corrected by a labelled sample.

corrected = mean of the judge's score over all answers
    + Σ over strata of their share of all answers · mean of (human − judge) in them

The judge's mean is precise, since all answers have a verdict, but off by the judge's bias; the
labelled sample estimates that bias, with the uncertainty of its size. Strata are models, settings
and k. An empty or truncated answer has the worst score without a judge, and no bias to correct.
Angelopoulos et al. (2023), "Prediction-powered inference", Science 382; survey statistics knows it
as the (post-stratified) difference estimator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import Estimate, cluster_errors, estimate
from vrag_kit.analysis.means import ARM
from vrag_kit.errors import VragError
from vrag_kit.judging.human_labels import score_of_label
from vrag_kit.judging.scale import Scale, require_columns, scale_of


def corrected_accuracy(
    judged: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """The judge's mean and the corrected mean of every arm: `by`, metric ("uncorrected" or
    "corrected"), value, ci_low, ci_high, n, n_failed, n_labelled.

    `judged` holds all answers, `pairs` the labelled ones of `join_labels`. It is assumed that
    within a model, setting and k `pairs` is a random sample of the rows of `judged` whose status is
    "ok", as `annotation_sample` draws, as many of each or at random from all: answers picked by
    hand, or left unlabelled because they are hard, bias the correction. Each stratum is corrected
    by its own labels only, so the bias of the judge may differ between them; nothing else is
    assumed of the judge. Means are over answers; the corrected one and its interval are cut to the
    judge's scale.

    Both parts vary together over groups; the interval is Student's, whose degrees of freedom are
    the fewest labelled groups of a stratum, less one. Where all labels of an arm agree with the
    judge they show no variance: the interval then adds, as independent, the disagreements that so
    many groups without one allow (Clopper-Pearson, as in `estimate`), which for a few labels is a
    lot. Without a label in a stratum the corrected mean is NaN; so is the interval with a stratum's
    labels of one group, or all off by the same amount unless all true scores are equal.

    A mean at an end of the scale, or labels whose true scores are all equal, show less
    variance than there may be. There the interval is extended to that of the labelled
    answers alone (`estimate`), which at an end is Clopper and Pearson's.
    """
    require_columns(judged, [*ARM, "group", "status", "score"], "corrected_accuracy")
    arm, scale = list(by), scale_of(judged)
    pairs = _with_off(pairs, scale)
    labels = dict(list(pairs.groupby(arm, sort=False)))
    rows = []
    for key, part in judged.groupby(arm, sort=False):
        own = labels.get(key, pairs.iloc[:0])
        judge = estimate(part["score"], part["group"], scale=scale)
        corrected = corrected_mean(part, own, judge, scale)
        rows.append((*key, "uncorrected", *judge, len(own)))
        rows.append((*key, "corrected", *corrected, judge.n, judge.n_failed, len(own)))
    counted = ["n", "n_failed", "n_labelled"]
    return pd.DataFrame(rows, columns=[*arm, "metric", "value", "ci_low", "ci_high", *counted])


def judge_bias_check(
    judged: pd.DataFrame, pairs: pd.DataFrame, *, baseline: str = "zero_shot"
) -> pd.DataFrame:
    """Gain of each arm over the setting `baseline`, and the judge's *differential* bias: its bias
    (judge − human) in the arm minus that in the baseline. A bias that is the same in both cancels;
    a differential one of the gain's size cancels the gain.

    model, setting, k, metric, value, ci_low, ci_high, n. All metrics are over the questions that
    have a verdict in both arms. metric is "gain" (by the judge, paired over them, with the interval
    of `paired_differences`), "break_even_bias" (that size, without an interval), "estimated_bias"
    and "corrected_gain" (gain − bias), found as in `corrected_accuracy`; n counts these
    questions, and the labels of both arms on them. In a gain all questions have equal weight, in a
    bias all answers. An arm without such a question has NaN. Raises `VragError` for a model without
    the baseline, or with several k of it.
    """
    needed = [*ARM, "query_id", "group", "status", "score"]
    require_columns(judged, needed, "judge_bias_check")
    scale = scale_of(judged)
    pairs = _with_off(pairs, scale)
    labels = dict(list(pairs.groupby(ARM, sort=False)))
    rows: list[tuple[object, ...]] = []
    for model, part in judged.groupby("model", sort=False):
        arms = dict(list(part.groupby(ARM, sort=False)))
        first = [key for key in arms if key[1] == baseline]
        if len(first) != 1:
            raise VragError(
                f"judge_bias_check: {model} has {len(first)} arms of {baseline!r}, expected one."
            )
        sides = {key: (answers, labels.get(key, pairs.iloc[:0])) for key, answers in arms.items()}
        base = sides.pop(first[0])
        for key, side in sides.items():
            rows += [(*key, *row) for row in _corrected_gain(side, base, scale)]
    return pd.DataFrame(rows, columns=[*ARM, "metric", "value", "ci_low", "ci_high", "n"])


@dataclass(frozen=True, slots=True)
class _Part:
    """A mean, or a sum of them, and what its doubt is made of."""

    value: float  # NaN without a label
    by_group: pd.Series  # what each group adds to the deviation; the squares add up to the variance
    unseen: float = 0.0  # doubt that labels do not show, independent of all else
    freedom: float = 1e9  # of Student's t; NaN where nothing can be told

    def plus(self, other: _Part, times: float = 1.0) -> _Part:
        """This and `times` the other, whose groups may be the same."""
        return _Part(
            self.value + times * other.value,
            self.by_group.add(times * other.by_group, fill_value=0.0),
            math.hypot(self.unseen, times * other.unseen),
            float(np.minimum(self.freedom, other.freedom)),
        )

    def interval(self) -> tuple[float, float]:
        """95 %; NaN where it cannot be told."""
        from scipy.special import stdtrit  # quantiles of Student's t

        error = math.sqrt(float((self.by_group**2).sum()))
        reach = math.hypot(float(stdtrit(self.freedom, 0.975)) * error, self.unseen)
        return self.value - reach, self.value + reach


def _corrected_gain(
    side: tuple[pd.DataFrame, pd.DataFrame], base: tuple[pd.DataFrame, pd.DataFrame], scale: Scale
) -> list[tuple[object, ...]]:
    """metric, value, ci_low, ci_high, n of one arm against the baseline, each given as
    its answers and those of them that are labelled.
    """
    by = ["query_id", "group"]
    one, other = (answers.groupby(by, sort=False)["score"].mean() for answers, _ in (side, base))
    gains = (one - other).dropna().reset_index()
    paired = estimate(gains["score"], gains["group"], scale=scale.differences)
    gain = _mean(gains["score"], gains["group"])
    if gain.by_group.abs().max() < 1e-12 * scale.width:  # what as many groups may leave unseen
        widest = np.max([paired.ci_high - paired.value, paired.value - paired.ci_low])
        gain = _Part(paired.value, gain.by_group, unseen=float(widest))
    offs, labels = [], 0
    for answers, own in (side, base):
        known, own = (part[part["query_id"].isin(gains["query_id"])] for part in (answers, own))
        offs.append(_off(known, own, scale))
        labels += len(own)
    bias = offs[1].plus(offs[0], -1.0) if len(gains) else gain
    corrected = gain.plus(bias, -1.0)
    return [
        ("gain", *paired[:4]),
        ("break_even_bias", paired.value, math.nan, math.nan, paired.n),
        ("estimated_bias", bias.value, *bias.interval(), labels),
        ("corrected_gain", corrected.value, *corrected.interval(), labels),
    ]


def corrected_mean(
    part: pd.DataFrame, own: pd.DataFrame, judge: Estimate, scale: Scale
) -> tuple[float, float, float]:
    """The corrected (mean, low, high) of the answers `part` of one arm, with the columns `ARM`,
    group, status and score, whose mean is `judge`; NaN without a label.

    `own` holds the labelled ones, with the column off: true score − score.
    """
    known = part[part["score"].notna()]
    off = _off(known, own, scale)
    both = _mean(known["score"], known["group"]).plus(off)
    if own.empty or math.isnan(both.value):  # a stratum without a label
        return math.nan, math.nan, math.nan
    if off.by_group.any():
        low, high = both.interval()
    else:  # labels show no variance: the judge's own interval, and what they may not show
        doubt = math.nan if math.isnan(off.freedom) else off.unseen
        low = judge.value - math.hypot(judge.value - judge.ci_low, doubt)
        high = judge.value + math.hypot(judge.ci_high - judge.value, doubt)
    true = (own["score"] + own["off"]).round(12)
    is_end = min(both.value - scale.worst, scale.best - both.value) < 1e-12 * scale.width
    if (is_end or true.nunique() == 1) and own["group"].nunique() > 1:
        alone = _by_labels_alone(known, own.assign(true=true), scale)
        low, high = np.fmin(low, alone[0]), np.fmax(high, alone[1])
    cut = np.clip([both.value, low, high], scale.worst, scale.best)
    return float(cut[0]), float(cut[1]), float(cut[2])


def _by_labels_alone(known: pd.DataFrame, own: pd.DataFrame, scale: Scale) -> tuple[float, float]:
    """(low, high) of the mean of the answers `known` by the column true of those that are
    labelled, each stratum by its share; silent answers keep their score.
    """
    asked = known[known["status"] == "ok"]
    labels = pd.MultiIndex.from_frame(own[ARM])
    weights = (asked.groupby(ARM).size() / own.groupby(ARM).size()).reindex(labels)
    found = estimate(own["true"], own["group"], scale=scale, weights=weights.to_numpy(float))
    silent = known.loc[known["status"] != "ok", "score"].sum()
    low, high = (len(asked) * end + silent for end in (found.ci_low, found.ci_high))
    return low / len(known), high / len(known)


def _off(answers: pd.DataFrame, own: pd.DataFrame, scale: Scale) -> _Part:
    """The mean of off over the answers with a score, of which `own` are labelled: of each stratum
    by its share, of silent answers 0.
    """
    known = answers[answers["score"].notna()]
    labels = dict(list(own.groupby(ARM, sort=False)))
    total = _Part(0.0, pd.Series(dtype=float))
    for key, asked in known[known["status"] == "ok"].groupby(ARM, sort=False):
        found = labels.get(key, own.iloc[:0])
        part = _mean(found["off"], found["group"])
        if part.freedom > 0 and not found["off"].any():
            unseen = scale.width * (1 - 0.025 ** (1 / found["group"].nunique()))
            part = _Part(0.0, part.by_group, unseen)
        elif found["off"].nunique() == 1:
            part = _Part(part.value, part.by_group, freedom=math.nan)
        total = total.plus(part, len(asked) / len(known))
    return total


def _with_off(pairs: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    """The labelled answers with the column off: human − judge."""
    human = np.array([score_of_label(label, scale) for label in pairs["human_label"]], float)
    return pairs.assign(off=human - pairs["score"].to_numpy(float))


def _mean(values: pd.Series, groups: pd.Series) -> _Part:
    """The mean of values, with the errors of `cluster_errors`. NaN without values."""
    if values.empty:
        return _Part(math.nan, pd.Series(dtype=float), freedom=math.nan)
    errors = cluster_errors(values, groups)
    return _Part(float(values.mean()), errors, freedom=len(errors) - 1 or math.nan)
