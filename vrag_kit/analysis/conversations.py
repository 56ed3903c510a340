"""Scores of every turn of every conversation, before and after early stopping."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.errors import SetupError, VragError
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, Query, Status

StopRule = Callable[[Sequence[float]], int | None]
"""The scores of a conversation's turns, in order → the turn, from 0, at which it ends;
None where it does not. That turn keeps its score; all later ones become missing.
"""
RUN = ["draw", "sample"]
"""Columns that distinguish the passes of one arm through a conversation."""


def apply_early_stop(
    judged: pd.DataFrame, benchmark: Benchmark, stop: StopRule, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Applies early stopping to the judged answers: one row for every turn of each conversation
    that has one there, in order. Adds the columns conversation, turn (from 0), turns (of the whole
    conversation), asked, stopped_at and after_stop.

    A score is the best of the scale (correct), 0 (missing) or the worst (incorrect). after_stop is
    the score once `stop` has ended the conversation: 0 for all turns after stopped_at, which is NaN
    where nothing ends it. A turn whose call failed, or whose verdict could not be parsed, leaves
    its conversation unscored, unless that ended before it: both are NaN in all its rows. `by` names
    the columns of an arm, whose draws and samples are separate. A query outside of conversations is
    one of a single turn.

    Turns after a stop need no answer: they have no row in `judged`, or the status "stopped". Raises
    `VragError` for a turn that is duplicated, or missing with no stop before it; for a benchmark
    whose own turns have gaps or duplicates; and for other scores, such as a mean over several
    verdicts.
    """
    rows = complete_conversations(judged, benchmark, by)
    found = mark_stopped(rows, stop)
    absent = ~found["asked"] & found["stopped_at"].isna()
    if absent.any():
        raise _missing(found[absent].iloc[0])
    return found


def complete_conversations(
    judged: pd.DataFrame, benchmark: Benchmark, by: Sequence[str]
) -> pd.DataFrame:
    """Completes the conversations of `judged` to a row for every turn, with the columns
    conversation, turn, turns and asked. Raises as `apply_early_stop` does.
    """
    require_columns(judged, ["query_id", "group", "status", "score"], "apply_early_stop")
    _check_scores(judged["score"], scale_of(judged))
    turns = _turns(benchmark)
    run = [*by, *(name for name in RUN if name in judged and name not in by)]
    keys = [*run, "query_id"]
    places = turns.set_index("query_id")["conversation"]
    _check_rows(judged, keys, places.index, benchmark.name)
    begun = judged[run].assign(conversation=judged["query_id"].map(places)).drop_duplicates()
    every = begun.merge(turns, on="conversation", how="left")
    rows = every.merge(judged[[*keys, *judged.columns.difference([*every, *keys])]], "left", keys)
    asked = rows["status"].notna() & (rows["status"] != Status.STOPPED)
    talk = rows["turn"].eq(0).cumsum()
    lost = (asked & rows["score"].isna()).groupby(talk).cummax()  # what follows is lost too
    rows = rows.assign(asked=asked | lost)
    gap = rows["asked"] & ~rows["asked"].groupby(talk).cummin()
    if gap.any():
        raise _missing(rows.loc[rows.index[gap][0] - 1])
    return rows


def mark_stopped(rows: pd.DataFrame, stop: StopRule) -> pd.DataFrame:
    """Adds the columns stopped_at and after_stop to the rows of `complete_conversations`."""
    scores, asked = rows["score"].to_numpy(float), rows["asked"].to_numpy(bool)
    lengths = rows["turns"].to_numpy(int)
    stopped_at, after = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    start = 0
    while start < len(rows):
        end = start + lengths[start]
        told = scores[start:end][asked[start:end]]
        lost = np.isnan(told)
        known = told[: lost.argmax()] if lost.any() else told  # up to the first lost turn
        turn = stop(known.tolist())
        if turn is not None or not lost.any():
            kept = len(known) if turn is None else turn + 1
            after[start:end] = 0.0
            after[start : start + kept] = known[:kept]
            stopped_at[start:end] = np.nan if turn is None else turn
        start = end
    return rows.assign(stopped_at=stopped_at, after_stop=after)


def _turns(benchmark: Benchmark) -> pd.DataFrame:
    """conversation, turn, turns, query_id and group of every query, turns in order."""
    talks: dict[str, list[Query]] = defaultdict(list)
    for query in benchmark.queries.values():
        talks[query.conversation_id or query.query_id].append(query)
    rows = []
    for name, queries in talks.items():
        queries.sort(key=lambda query: query.turn)
        found = [query.turn for query in queries]
        if found != list(range(len(queries))) and queries[0].conversation_id is not None:
            raise VragError(
                f"{benchmark.name}: conversation {name!r} has the turns"
                f" {', '.join(map(str, found))}; expected each from 0 to {len(queries) - 1} once."
                " Keep whole conversations when you choose queries."
            )
        for turn, query in enumerate(queries):
            rows.append((name, turn, len(queries), query.query_id, query.group))
    return pd.DataFrame(rows, columns=["conversation", "turn", "turns", "query_id", "group"])


def _check_scores(scores: pd.Series, scale: Scale) -> None:
    """Raise `VragError` unless every score says right, missing or wrong."""
    if not scale.worst < scale.nothing < scale.best:
        raise SetupError(
            f"apply_early_stop: the scores are on a scale from {scale.worst:g} to {scale.best:g},"
            " which"
            " does not tell wrong from missing; expected a judge whose worst is below 0 by as much"
            " as its best is above, as on (-1, 1)."
        )
    allowed = [scale.worst, scale.nothing, scale.best]
    odd = scores.notna() & ~scores.isin(allowed)
    if odd.any():
        raise VragError(
            f"apply_early_stop: row {scores.index[odd][0]}: found the score"
            f" {scores[odd].iloc[0]:g},"
            f" expected one of {', '.join(f'{each:g}' for each in allowed)}. A mean over several"
            " verdicts is none of them: judge once (judge_samples = 1)."
        )


def _check_rows(judged: pd.DataFrame, keys: Sequence[str], known: pd.Index, benchmark: str) -> None:
    """Raise `VragError` for an answer to no query, and for two of one arm to one."""
    odd = ~judged["query_id"].isin(known)
    if odd.any():
        raise VragError(
            f"apply_early_stop: {judged['query_id'][odd].iloc[0]!r} is no query of {benchmark};"
            " give the"
            " benchmark that was asked."
        )
    double = judged.duplicated(list(keys))
    if double.any():
        raise VragError(
            f"apply_early_stop: found two answers to {judged['query_id'][double].iloc[0]!r},"
            " expected one"
            f" for each {', '.join(keys)}. Name in `by` what tells them apart."
        )


def _missing(row: pd.Series) -> VragError:
    return VragError(
        f"apply_early_stop: conversation {row['conversation']!r} of {row['turns']} turns: there is"
        " no"
        f" answer to turn {row['turn']} ({row['query_id']!r}), and nothing stopped it before."
        " Give the answers to all its turns."
    )


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
