"""Early stopping: the scores of every turn of every conversation, before and after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.means import ARM
from vrag_kit.errors import SetupError, VragError
from vrag_kit.judging.scale import require_columns, scale_of
from vrag_kit.types import Benchmark, Status

StopRule = Callable[[Sequence[float]], int | None]
"""The scores of a conversation's turns, in order → the turn, from 0, at which it ends;
None where it does not. That turn keeps its score; all later ones become missing.
"""


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
    `VragError` for a turn that is duplicated, or missing with no stop before it, and for other
    scores, such as a mean over several verdicts.
    """
    require_columns(judged, ["query_id", "group", "status", "score"], "apply_early_stop")
    turns = _turns(benchmark)
    run = list(dict.fromkeys([*by, *judged.columns.intersection(["draw", "sample"])]))
    keys = [*run, "query_id"]
    conversations = turns.set_index("query_id")["conversation"]
    _check(judged, keys)
    begun = judged[run].assign(conversation=judged["query_id"].map(conversations))
    every = begun.drop_duplicates().merge(turns, on="conversation", how="left")
    rows = every.merge(judged[[*keys, *judged.columns.difference([*every, *keys])]], "left", keys)
    passes = conversation_passes(rows)
    asked = rows["status"].notna() & (rows["status"] != Status.STOPPED)
    lost = (asked & rows["score"].isna()).groupby(passes).cummax()  # what follows is lost too
    ends = scale_of(judged)  # also of turns that were not asked
    rows = rows.assign(asked=asked | lost, score_min=ends.worst, score_max=ends.best)
    found = mark_stopped(rows, stop)
    asked_later = found["asked"][::-1].groupby(passes).cummax()
    absent = found[~found["asked"] & (asked_later | found["stopped_at"].isna())]
    if len(absent):
        row = absent.iloc[0]
        raise VragError(
            f"apply_early_stop: found no answer to turn {row['turn']} ({row['query_id']!r}) of"
            f" conversation {row['conversation']!r}, and nothing stopped it before."
        )
    return found


def conversation_passes(rows: pd.DataFrame) -> pd.Series:
    """The number of each row's pass through a conversation, of complete ones in order."""
    return rows["turn"].eq(0).cumsum().rename("pass")


def mark_stopped(rows: pd.DataFrame, stop: StopRule) -> pd.DataFrame:
    """Adds the columns stopped_at and after_stop to complete conversations."""
    scores, asked = rows["score"].to_numpy(float), rows["asked"].to_numpy(bool)
    stopped_at, after = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    starts = np.flatnonzero(rows["turn"] == 0)
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        given = scores[start:end][asked[start:end]]
        known = given[np.isnan(given).cumsum() == 0]  # up to the first lost turn
        turn = stop(known.tolist())
        if turn is None and len(known) < len(given):
            continue
        kept = len(known) if turn is None else turn + 1
        after[start:end] = 0.0
        after[start : start + kept] = known[:kept]
        stopped_at[start:end] = np.nan if turn is None else turn
    return rows.assign(stopped_at=stopped_at, after_stop=after)


def _turns(benchmark: Benchmark) -> pd.DataFrame:
    """conversation, turn, turns, query_id and group of every query, turns in order."""
    queries = benchmark.queries
    columns = {
        "conversation": [query.conversation_id or name for name, query in queries.items()],
        "turn": [query.turn if query.conversation_id else 0 for query in queries.values()],
        "query_id": list(queries),
        "group": [query.group for query in queries.values()],
    }
    table = pd.DataFrame(columns)
    whole = table.groupby("conversation", sort=False)
    table = table.assign(turns=whole["turn"].transform("size"), order=whole.ngroup())
    table = table.sort_values(["order", "turn"], kind="stable", ignore_index=True)
    return table[["conversation", "turn", "turns", "query_id", "group"]]


def _check(judged: pd.DataFrame, keys: Sequence[str]) -> None:
    """Raise `VragError` for a score that is not one of three, and for two answers of one arm to one
    query.
    """
    scale, scores = scale_of(judged), judged["score"]
    if not scale.worst < scale.nothing < scale.best:
        raise SetupError(
            f"apply_early_stop: found scores from {scale.worst:g} to {scale.best:g}, which does not"
            " tell wrong from missing; expected a judge with a scale such as (-1, 1)."
        )
    allowed = [scale.worst, scale.nothing, scale.best]
    if (odd := scores.notna() & ~scores.isin(allowed)).any():
        problem = f"row {odd.idxmax()}: found the score {scores[odd].iloc[0]:g}, expected {allowed}"
    elif (odd := judged.duplicated(list(keys))).any():
        problem = f"found two answers to {judged['query_id'][odd].iloc[0]!r} of one model"
    else:
        return
    raise VragError(f"apply_early_stop: {problem}.")
