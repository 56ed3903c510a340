"""Means of the paper's metrics over turns and conversations, before and after early stopping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.conversations import (
    StopRule,
    apply_early_stop,
    conversation_passes,
    mark_stopped,
)
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.generation import EarlyStop
from vrag_kit.judging import Judge, judge_answers
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.types import PLACEHOLDER, Benchmark

BEFORE = ("accuracy", "missing", "hallucination")
"""Shares of turns that are correct, missing and incorrect, before early stopping."""
AFTER = ("accuracy_early_stopped", "missing_early_stopped", "hallucination_early_stopped")
"""The same shares after early stopping."""
PER_CONVERSATION = ("truthfulness", "early_stop", "early_stop_before_last_turn", "successful_turns")
METRICS = (*BEFORE, *AFTER, *PER_CONVERSATION)
_BOUNDS = ("bound_low", "bound_high")


def early_stopping_rule(scores: Sequence[float]) -> int | None:
    """Returns the first turn, from 1, that is not correct and follows one that is not; None if
    there is none. A correct turn scores 1, a missing one 0, an incorrect one −1 (section 4).

    That turn keeps its score, and all later ones count as missing (early stop, section 4). A turn
    without a score, NaN, does not count as incorrect.
    """
    for turn in range(1, len(scores)):
        if scores[turn - 1] < 1 and scores[turn] < 1:
            return turn
    return None


def conversation_means(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    stop: StopRule = early_stopping_rule,
    *,
    by: Sequence[str] = ARM,
    slices: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Means of all `METRICS` by arm: `by`, metric, value, ci_low, ci_high, n, n_turns, n_failed,
    bound_low, bound_high.

    accuracy, missing and hallucination are shares of turns before early stopping, with
    "_early_stopped" after it, in [0, 1]. truthfulness is the mean score of a conversation's turns
    after early stopping, then over conversations, on the judge's scale; early_stop the share of
    conversations that `stop` ended, possibly at their last turn, and early_stop_before_last_turn
    the share ended with turns left; successful_turns the correct turns after early stopping, per
    conversation. Of single questions only `BEFORE`, `AFTER` and truthfulness, which is accuracy −
    hallucination.

    n counts conversations, n_turns their turns; the interval is over groups. n_failed counts
    conversations that are unscored (see `apply_early_stop`; before early stopping, those with any
    turn without a verdict), once for each draw and sample; bound_low and bound_high are the values
    if each of their turns without a verdict were incorrect, or correct. Where turns after a stop
    were not generated, the shares before it are NaN, with n = 0.

    With `slices`, which names the slice of every query, the only metric is truthfulness, by slice:
    `by`, slice, metric … A value is then the mean score of a conversation's turns in the slice,
    then over conversations; n counts those with such turns. Early stopping applies to the whole
    conversation, before its turns are split into slices, in whose order the rows are. Raises
    `KeyError` for a query without a slice, and `VragError` as `apply_early_stop` does.
    """
    metrics: Sequence[str] = METRICS
    if not any(query.conversation_id for query in benchmark.queries.values()):
        metrics = (*BEFORE, *AFTER, "truthfulness")
    keys = [*by, "metric"]
    if slices is not None:
        metrics = ("truthfulness",)
        keys = [*by, "slice", "metric"]
    values = conversation_values(
        judged, benchmark, metrics=metrics, by=by, slices=slices, stop=stop
    )
    known = values["value"].notna()
    values["n"] = values["conversation"].where(known)
    values["n_turns"] = values["n_turns"].where(known, 0).astype(int)
    means = cluster_means(values, keys)[[*keys, "value", "ci_low", "ci_high"]]
    numbers = {"n": "nunique", "n_turns": "sum", "n_failed": "sum"} | dict.fromkeys(_BOUNDS, "mean")
    counts = values.groupby(keys, sort=False, dropna=False).agg(numbers)
    table = means.join(counts.reset_index(drop=True))
    if slices is None:
        return table
    order = list(dict.fromkeys(slices.values()))
    rows = table["slice"].map(order.index).argsort(kind="stable")
    return table.iloc[rows].reset_index(drop=True)


def conversation_values(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    *,
    metrics: Sequence[str] = ("truthfulness",),
    by: Sequence[str] = ARM,
    slices: Mapping[str, str] | None = None,
    stop: StopRule = early_stopping_rule,
) -> pd.DataFrame:
    """Values of some of `METRICS`, in the form of `paired_differences`: metric, `by`, conversation,
    query_id, group, score_min, score_max, value, bound_low, bound_high, n_turns, n_failed, each a
    mean over draws and samples; n_failed counts those that are unscored. Shares of turns have a row
    for each turn, others (`PER_CONVERSATION`) for each conversation, whose name is the query_id.
    NaN where the conversation is unscored.

    With `slices`, which names the slice of every query, they are by slice, in the column slice
    after `by`: truthfulness as in `conversation_means`, shares of the turns in the slice. Raises as
    `conversation_means` does.
    """
    rows, keys = apply_early_stop(judged, benchmark, stop, by=by), [*by]
    if slices is not None:
        rows, keys = rows.assign(slice=rows["query_id"].map(slices.__getitem__)), [*by, "slice"]
    scale, missing = scale_of(rows), rows["asked"] & rows["score"].isna()
    versions = {"value": _turn_values(rows, by)}
    for bound, end in zip(_BOUNDS, (scale.worst, scale.best), strict=True):
        filled = rows.assign(score=rows["score"].mask(missing, end))
        versions[bound] = _turn_values(mark_stopped(filled, stop), by)
    rows = rows.assign(passes=conversation_passes(rows), n_turns=1)
    lost = missing.groupby(rows["passes"]).transform("any")
    ends = {"truthfulness": scale, "successful_turns": Scale(0.0, float(rows["turns"].max()))}
    parts = []
    for metric in metrics:
        values = {name: version[metric] for name, version in versions.items()}
        on = ends.get(metric, SHARES)
        part = rows.assign(**values, metric=metric, score_min=on.worst, score_max=on.best)
        part["n_failed"] = lost if metric in BEFORE else rows["after_stop"].isna()
        if metric in PER_CONVERSATION:
            part["query_id"] = part["conversation"]
        else:
            part["n_failed"] &= part["turn"].eq(0)  # a conversation fails once
        parts.append(part)
    every = ["metric", *keys, "conversation", "query_id", "group", "score_min", "score_max"]
    unit = list(dict.fromkeys(every))  # `by` may name one of them
    means = dict.fromkeys(versions, "mean")
    whole = pd.concat(parts).groupby([*unit, "passes"], sort=False, dropna=False)
    units = whole.agg(means | {"n_turns": "sum", "n_failed": "any"}).reset_index()
    runs = units.groupby(unit, sort=False, dropna=False)
    return runs.agg(means | {"n_turns": "mean", "n_failed": "sum"}).reset_index()


def _turn_values(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A column for each of `METRICS`; a conversation's value is the mean over its turns."""
    scale, after = scale_of(rows), rows["after_stop"]
    known = rows["asked"] & rows["score"].notna()
    whole = known.groupby(conversation_passes(rows)).transform("all")
    asked = rows.groupby(list(by), sort=False, dropna=False)["asked"].transform("all")
    columns = {}
    for names, scores in ((BEFORE, rows["score"].where(asked & whole)), (AFTER, after)):
        for name, score in zip(names, (scale.best, scale.nothing, scale.worst), strict=True):
            columns[name] = scores.eq(score).where(scores.notna())
    stopped = {
        "truthfulness": after,
        "early_stop": rows["stopped_at"].notna(),
        "early_stop_before_last_turn": rows["stopped_at"] < rows["turns"] - 1,
        "successful_turns": rows["turns"] * after.eq(scale.best),
    }
    columns |= {name: column.where(after.notna()) for name, column in stopped.items()}
    return pd.DataFrame(columns).astype(float)


def early_stopping(judge: Judge, benchmark: Benchmark) -> EarlyStop:
    """Returns an `EarlyStop` that judges each turn once answered and stops by
    `early_stopping_rule`.

    Turns that are not asked count as missing, as do turns after a stop: truthfulness is the same.
    A turn without a parsed verdict never triggers the stop, nor does a placeholder verdict of a dry
    run.
    """

    def score(answers: pd.DataFrame) -> Sequence[float]:
        judged = judge_answers(judge, benchmark, answers, partial=True)
        stands_in = judged["marks"].str.contains(PLACEHOLDER, regex=False)
        return judged["score"].mask(stands_in).tolist()

    return EarlyStop(score=score, rule=early_stopping_rule)
