"""Means over conversations before and after early stopping: accuracy, missing, hallucination,
truthfulness, early stops, and truthfulness by slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.conversations import RUN, StopRule, apply_early_stop, mark_stopped
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.types import Benchmark

BEFORE = ("accuracy", "missing", "hallucination")
"""Shares of turns that are correct, missing and incorrect, before early stopping."""
AFTER = ("accuracy_early_stopped", "missing_early_stopped", "hallucination_early_stopped")
"""The same shares after early stopping."""
PER_CONVERSATION = ("truthfulness", "early_stop", "early_stop_before_last_turn", "successful_turns")
METRICS = (*BEFORE, *AFTER, *PER_CONVERSATION)
_BOUNDS = ("bound_low", "bound_high")
_NUMBERS = ["value", "ci_low", "ci_high", "n", "n_turns", "n_failed", *_BOUNDS]
_UNIT = ["query_id", "group"]
_ENDS = ["score_min", "score_max"]


def conversation_means(
    judged: pd.DataFrame, benchmark: Benchmark, stop: StopRule, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Means of all `METRICS` by arm: `by`, metric, value, ci_low, ci_high, n, n_turns, n_failed,
    bound_low, bound_high.

    accuracy, missing and hallucination are shares of turns before early stopping, with
    "_early_stopped" after it, in [0, 1]. truthfulness is the mean score of a conversation's turns
    after early stopping, then over conversations, on the judge's scale; early_stop the share of
    conversations that `stop` ended, possibly at their last turn, and early_stop_before_last_turn
    the share ended with turns left; successful_turns the correct turns after early stopping, per
    conversation. For single questions truthfulness is accuracy − hallucination.

    n counts conversations, n_turns their turns; the interval is over groups. n_failed counts
    conversations that are unscored (see `apply_early_stop`; before early stopping, those with any
    turn without a verdict), once for each draw and sample; bound_low and bound_high are the values
    if each of their turns without a verdict were incorrect, or correct. Where turns after a stop
    were not generated, the shares before it are NaN, with n = 0. Raises as `apply_early_stop` does.
    """
    scale, keys = scale_of(judged), list(by)
    three = _three(apply_early_stop(judged, benchmark, stop, by=by), stop, scale)
    turns = [_by_turn(rows, keys, scale) for rows in three]
    talks = [_conversation_groups(rows, keys, scale) for rows in three]
    tables = [_numbers(turns, metric, keys, SHARES) for metric in (*BEFORE, *AFTER)]
    for metric in PER_CONVERSATION:
        tables.append(_numbers(talks, metric, keys, _scale(metric, three[0], scale)))
    table = pd.concat(tables, ignore_index=True)
    rows, before = three[0], table["metric"].isin(BEFORE)
    parts = [
        table[before].merge(_unscored(rows, keys, _lost(rows, keys)), on=keys),
        table[~before].merge(_unscored(rows, keys, rows["after_stop"].isna()), on=keys),
    ]
    return pd.concat(parts, ignore_index=True)[[*keys, "metric", *_NUMBERS]]


def conversation_values(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    stop: StopRule,
    *,
    metric: str = "truthfulness",
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Values of one metric of `conversation_means`, in the form of `paired_differences`: `by`,
    query_id, group, value, score_min, score_max. Shares of turns have a row for each turn, others
    for each conversation, whose name is the query_id. NaN where the conversation is unscored.
    Raises `VragError` for an unknown metric, and as `apply_early_stop` does.
    """
    if metric not in METRICS:
        raise VragError(f"metric is {metric!r}; expected one of {', '.join(METRICS)}.")
    keys, scale = list(by), scale_of(judged)
    rows = apply_early_stop(judged, benchmark, stop, by=by)
    units = _conversation_groups if metric in PER_CONVERSATION else _by_turn
    found = _named(units(rows, keys, scale), metric, _scale(metric, rows, scale))
    return found[[*keys, *_UNIT, "value", *_ENDS]]


def slice_means(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    stop: StopRule,
    labels: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Truthfulness by slice: `by`, slice, metric ("truthfulness") and the numbers of
    `conversation_means`; n counts the conversations that have such turns.

    `labels` names the slice of every query. A value is the mean score of a conversation's turns in
    the slice, after early stopping, then over conversations. Early stopping applies to the whole
    conversation, before its turns are split into slices. Raises `VragError` for a query without a
    label, and as `apply_early_stop` does.
    """
    scale, keys = scale_of(judged), [*by, "slice"]
    three = _three(_sliced(apply_early_stop(judged, benchmark, stop, by=by), labels), stop, scale)
    table = _numbers([_truth(rows, keys) for rows in three], "truthfulness", keys, scale)
    failed = _unscored(three[0], keys, three[0]["after_stop"].isna())
    return table.merge(failed, on=keys)[[*keys, "metric", *_NUMBERS]]


def slice_values(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    stop: StopRule,
    labels: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Values of `slice_means`, in the form of `paired_differences`: `by`, slice, query_id (the
    conversation), group, value, score_min, score_max.
    """
    rows, keys = _sliced(apply_early_stop(judged, benchmark, stop, by=by), labels), [*by, "slice"]
    found = _named(_truth(rows, keys), "truthfulness", scale_of(judged))
    return found[[*keys, *_UNIT, "value", *_ENDS]]


def _sliced(rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    slices = rows["query_id"].map(labels)
    if slices.isna().any():
        raise VragError(
            f"slices: {rows['query_id'][slices.isna()].iloc[0]!r} has no label; give one for every"
            " query of the benchmark."
        )
    return rows.assign(slice=slices)


def _three(rows: pd.DataFrame, stop: StopRule, scale: Scale) -> list[pd.DataFrame]:
    """The rows as they are, and with what has no verdict as wrong, and as right."""
    lost = rows["asked"] & rows["score"].isna()
    filled = [rows.assign(score=rows["score"].mask(lost, end)) for end in (scale.worst, scale.best)]
    return [rows, *(mark_stopped(each, stop) for each in filled)]


def _numbers(
    three: Sequence[pd.DataFrame], metric: str, keys: list[str], scale: Scale
) -> pd.DataFrame:
    """One metric's numbers but for n_failed, from the units of the rows of `_three`."""
    found = _named(three[0], metric, scale)
    table = cluster_means(found, keys).drop(columns=["n", "n_failed"]).assign(metric=metric)
    for name, units in zip(_BOUNDS, three[1:], strict=True):
        means = units.groupby(keys, sort=False, dropna=False)[metric].mean()
        table = table.merge(means.rename(name).reset_index(), on=keys)
    known = found.assign(
        n=found["conversation"].where(found["value"].notna()),
        n_turns=found["n_turns"].where(found["value"].notna(), 0),
    )
    arms = known.groupby(keys, sort=False, dropna=False)
    counts = arms.agg(n=("n", "nunique"), n_turns=("n_turns", "sum")).reset_index()
    return table.merge(counts.astype({"n_turns": int}), on=keys)


def _named(units: pd.DataFrame, metric: str, scale: Scale) -> pd.DataFrame:
    """The units with one metric as their value, and its scale."""
    return units.assign(value=units[metric], score_min=scale.worst, score_max=scale.best)


def _scale(metric: str, rows: pd.DataFrame, scale: Scale) -> Scale:
    if metric == "truthfulness":
        return scale
    most = float(rows["turns"].max()) if metric == "successful_turns" else 1.0
    return Scale(0.0, most)


def _lost(rows: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Whether a turn of the row's conversation has no verdict though it was asked."""
    lost = rows.assign(lost=rows["asked"] & rows["score"].isna())
    return lost.groupby(_run(rows, keys), sort=False, dropna=False)["lost"].transform("any")


def _unscored(rows: pd.DataFrame, keys: list[str], failed: pd.Series) -> pd.DataFrame:
    """How many conversations of each arm `failed` marks, by draw and sample: n_failed."""
    talks = rows.assign(n_failed=failed).drop_duplicates(_run(rows, keys))
    return talks.groupby(keys, sort=False, dropna=False)["n_failed"].sum().reset_index()


def _run(rows: pd.DataFrame, keys: list[str]) -> list[str]:
    """The columns that name one way through one conversation."""
    return [*keys, *(name for name in RUN if name in rows and name not in keys), "conversation"]


def _by_turn(rows: pd.DataFrame, keys: list[str], scale: Scale) -> pd.DataFrame:
    """keys, conversation, query_id, group, n_turns (1), `BEFORE` and `AFTER`, by turn."""
    asked = rows.groupby(keys, sort=False, dropna=False)["asked"].transform("all")
    before = rows["score"].where(asked & ~_lost(rows, keys))
    after = rows["after_stop"]
    shares = {}
    for names, scores in ((BEFORE, before), (AFTER, after)):
        for name, score in zip(names, (scale.best, scale.nothing, scale.worst), strict=True):
            shares[name] = scores.eq(score).astype(float).where(scores.notna())
    return _over_runs(rows.assign(**shares, n_turns=1), keys, [*BEFORE, *AFTER])


def _conversation_groups(rows: pd.DataFrame, keys: list[str], scale: Scale) -> pd.DataFrame:
    """keys, conversation, query_id (the same), group, n_turns and `PER_CONVERSATION`, by
    conversation.
    """
    after, stopped_at = rows["after_stop"], rows["stopped_at"]
    told = {
        "truthfulness": after,
        "early_stop": stopped_at.notna(),
        "early_stop_before_last_turn": stopped_at < rows["turns"] - 1,
        "successful_turns": rows["turns"] * after.eq(scale.best),  # its mean is their number
    }
    known = {name: column.astype(float).where(after.notna()) for name, column in told.items()}
    return _by_conversation(rows.assign(**known), keys, list(PER_CONVERSATION))


def _truth(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Truthfulness of each conversation's turns among the rows, as `_conversation_groups` has
    it.
    """
    return _by_conversation(rows.assign(truthfulness=rows["after_stop"]), keys, ["truthfulness"])


def _by_conversation(rows: pd.DataFrame, keys: list[str], columns: list[str]) -> pd.DataFrame:
    """Means of the columns over the turns of a conversation, then over its runs."""
    talks = rows.groupby([*_run(rows, keys), "group"], sort=False, dropna=False)
    means = talks[columns].mean().assign(n_turns=talks.size()).reset_index()
    return _over_runs(means.assign(query_id=means["conversation"]), keys, columns)


def _over_runs(units: pd.DataFrame, keys: list[str], columns: list[str]) -> pd.DataFrame:
    """Means over draws and samples."""
    names = list(dict.fromkeys([*keys, "conversation", *_UNIT]))
    runs = units.groupby(names, sort=False, dropna=False)
    return runs[[*columns, "n_turns"]].mean().reset_index()
