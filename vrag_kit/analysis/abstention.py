"""Selective accuracy, detection metrics of abstention, and risk over coverage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from vrag_kit.analysis.estimates import cluster_bootstrap, cluster_means, estimate
from vrag_kit.analysis.means import ARM, per_query
from vrag_kit.judging.scale import require_columns, scale_of
from vrag_kit.types import Benchmark


def abstains(shares: pd.Series) -> pd.Series:
    """1.0 where at least half of an answer's verdicts abstain, else 0.0; NaN without a verdict."""
    return (shares >= 0.5).astype(float).where(shares.notna())


def selective_accuracy(judged: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Accuracy over the answers given, and over all answers: `by`, accuracy, value, ci_low,
    ci_high, n answers given, n_declined, n_failed.

    `value` is the mean over the answers given (a question may be answered in one draw and not in
    another), with an interval over groups; `accuracy` the mean over queries as elsewhere. Both lie
    on the judge's scale; value is NaN when all answers abstain. An answer is given when fewer than
    half of its verdicts abstain.
    """
    require_columns(judged, ["query_id", "group", "score", "abstained"], "selective_accuracy")
    arm = list(by)
    given = judged.assign(
        value=judged["score"].where(judged["abstained"] < 0.5),
        declined=judged["abstained"] >= 0.5,
        failed=judged["score"].isna(),
    )
    arms = given.groupby(arm, sort=False, dropna=False)
    counts = arms.agg(n_declined=("declined", "sum"), n_failed=("failed", "sum")).reset_index()
    queries = per_query(judged, by=arm).groupby(arm, sort=False, dropna=False)["value"]
    plain = queries.mean().rename("accuracy").reset_index()
    means = cluster_means(given, arm).drop(columns="n_failed")
    return plain.merge(means, on=arm).merge(counts, on=arm)


FEWEST = 5
"""The fewest groups with trials of either sort; resamples of fewer are too similar."""
_NEEDED = ["query_id", "group", "score", "abstained"]


def add_has_evidence(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds the column clue_in_context to the judged answers: whether the context has a relevant
    document, by the benchmark's labels.
    """
    require_columns(judged, ["query_id", "doc_ids"], "add_has_evidence")
    clues = {query_id: set(benchmark.relevant(query_id)) for query_id in set(judged["query_id"])}
    there = [
        not clues[query_id].isdisjoint(doc_ids)
        for query_id, doc_ids in zip(judged["query_id"], judged["doc_ids"], strict=True)
    ]
    return judged.assign(clue_in_context=there)


def d_prime(
    hits: ArrayLike, signals: ArrayLike, false_alarms: ArrayLike, noises: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Computes (d′, criterion) from `hits` of `signals` and `false_alarms` of `noises`, numbers or
    arrays of one shape, in the shape of these; NaN without signals or without noises.

    d′ = z(H) − z(F), criterion = −(z(H) + z(F)) / 2, with z the normal quantile and the log-linear
    correction H = (hits + ½) / (signals + 1), which keeps both finite, so d′ is limited by the
    number of trials. d′ = 0 is no discrimination; a criterion below 0 is a bias towards abstention.

    Hautus (1995), "Corrections for extreme proportions and their biasing effects on
    estimated values of d′", Behavior Research Methods 27(1).
    """
    from scipy.special import ndtri

    of_signals, of_noises = np.asarray(signals), np.asarray(noises)
    z_hit = ndtri((np.asarray(hits) + 0.5) / (of_signals + 1))
    z_false = ndtri((np.asarray(false_alarms) + 0.5) / (of_noises + 1))
    unknown = np.where((of_signals > 0) & (of_noises > 0), 0.0, np.nan)
    return z_hit - z_false + unknown, -(z_hit + z_false) / 2 + unknown


def _detection(counts: np.ndarray, place: int) -> np.ndarray:
    """d′ or criterion of rows (hits, signals, false alarms, noises)."""
    return d_prime(*counts.T)[place]


def abstention_detection(judged: pd.DataFrame, *, by: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """Detection metrics of abstention without and with evidence: `by`, metric, value, ci_low,
    ci_high, n, n_failed.

    `judged` of `add_has_evidence`. A hit is an abstention without evidence, a false alarm one with
    evidence; an answer abstains when at least half of its verdicts say so, an empty one does not.
    metric: abstention_hit_rate and abstention_false_alarm_rate in [0, 1] with intervals as
    `estimate` gives them, d_prime and criterion of their counts (`d_prime`) with percentile
    bootstrap intervals, whole groups resampled 4,000 times. These are NaN where a rate is 0 or 1 or
    all groups are equal, since all resamples then agree, and where fewer than five groups have
    answers of either sort. n counts answers, of the rate or of both; n_failed those without a
    verdict, which are left out.
    """
    source = "abstention_detection of add_has_evidence(judged, benchmark)"
    require_columns(judged, [*_NEEDED, "clue_in_context"], source)
    rows: list[tuple[object, ...]] = []
    for key, part in judged.groupby(list(by), sort=False, dropna=False):
        evidence = part["clue_in_context"].astype(bool)
        declined = abstains(part["abstained"])
        rates = {
            "abstention_hit_rate": estimate(declined[~evidence], part["group"][~evidence]),
            "abstention_false_alarm_rate": estimate(declined[evidence], part["group"][evidence]),
        }
        rows += [(*key, metric, *rate) for metric, rate in rates.items()]
        declines = declined == 1
        trials = [declines & ~evidence, ~evidence, declines & evidence, evidence]
        known = declined.notna()
        counts = pd.concat(trials, axis=1)[known].groupby(part["group"]).sum().to_numpy()
        few = (counts[:, [1, 3]] > 0).sum(axis=0).min() < FEWEST
        unknown = few or any(rate.value in (0, 1) for rate in rates.values())
        n, failed = int(known.sum()), int((~known).sum())
        for place, metric in enumerate(("d_prime", "criterion")):
            found = cluster_bootstrap(counts, partial(_detection, place=place), seed=seed)
            interval = (np.nan, np.nan) if unknown else found[1:]
            rows.append((*key, metric, found[0], *interval, n, failed))
    columns = [*by, "metric", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def risk_coverage(judged: pd.DataFrame, *, by: Sequence[str]) -> pd.DataFrame:
    """Selective accuracy over coverage, the share of prompts that get an answer: `by`, threshold,
    coverage, coverage_low, coverage_high, value, ci_low, ci_high, n, n_failed.

    A prompt (query and draw) is answered when at most the share `threshold` of its samples
    abstains; value is the mean score, on the judge's scale, of the samples that do not abstain
    (empty ones have the worst), over the `n` prompts answered; NaN when none is. With one sample a
    prompt there is one row, the operating point at threshold 0; with several a curve: one row for
    each share that occurs. Risk is the scale's best − value. n_failed counts prompts without a
    verdict.

    El-Yaniv & Wiener (2010), "On the foundations of noise-free selective
    classification", JMLR 11.
    """
    require_columns(judged, [*_NEEDED, "draw"], "risk_coverage")
    scale = scale_of(judged)
    given = judged.assign(
        declined=abstains(judged["abstained"]),
        earned=judged["score"].where(judged["abstained"] < 0.5),
    )
    prompts = given.groupby([*by, "query_id", "group", "draw"], sort=False, dropna=False)
    table = prompts.agg(declined=("declined", "mean"), earned=("earned", "mean")).reset_index()
    rows: list[tuple[object, ...]] = []
    for key, part in table.groupby(list(by), sort=False, dropna=False):
        known = part[part["declined"].notna()]
        for threshold in sorted({0.0, *known.loc[known["declined"] < 1, "declined"]}):
            answered = known["declined"] <= threshold
            coverage = estimate(answered, known["group"])
            earned = estimate(known["earned"][answered], known["group"][answered], scale=scale)
            failed = len(part) - len(known)
            rows.append((*key, threshold, *coverage[:3], *earned[:4], failed))
    columns = ["threshold", "coverage", "coverage_low", "coverage_high"]
    numbers = ["value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=[*by, *columns, *numbers])
