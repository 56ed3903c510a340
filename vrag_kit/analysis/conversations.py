"""Scores of every turn of every conversation, before and after early stopping."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.errors import SetupError, VragError
from vrag_kit.judging.scale import Scale, scale_of
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
