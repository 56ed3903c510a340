"""Conversations, turn by turn: the next prompt holds what the model itself said before.

All conversations go on together, so that batches stay full; the store's key of a turn
fixes the whole path to it, since the answers on it are part of the prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from vrag_kit.errors import VragError
from vrag_kit.types import Answer, Benchmark, Context, Failure, Status, Turn

History = tuple[Turn, ...]
Talk = tuple[str, str, int, int | None, int]
"""What the turns of one conversation have in common: its id, setting, k, m, draw."""


def turn_by_turn(
    benchmark: Benchmark,
    contexts: Sequence[Context],
    ask: Callable[[Sequence[Context], Sequence[History]], Sequence[Answer]],
) -> list[Answer]:
    """The answer to each context, in order.

    `ask` answers some contexts, each after its history: first turns and questions that
    stand alone together, then second turns, and so on. A history are the turns before
    in the same setting, k, m and draw; an empty answer is an empty turn of it. After a
    turn whose call failed a conversation is not asked on: its later turns fail with
    `Status.EARLIER_TURN`. Raises `VragError`, before anything is asked, for a turn
    whose earlier turn in the benchmark is not among the contexts.
    """
    _check_whole(benchmark, contexts)
    places: dict[int, list[int]] = defaultdict(list)
    for place, context in enumerate(contexts):
        query = benchmark.queries[context.query_id]
        places[query.turn if query.conversation_id is not None else 0].append(place)
    said: dict[Talk, History] = {}
    ended: set[Talk] = set()
    answers: dict[int, Answer] = {}
    for turn in sorted(places):
        talks = {place: talk_of(benchmark, contexts[place]) for place in places[turn]}
        for place, talk in talks.items():
            if talk in ended:
                answers[place] = _not_asked()
        asked = [place for place, talk in talks.items() if talk not in ended]
        histories = [said.get(talk, ()) if (talk := talks[place]) else () for place in asked]
        found = ask([contexts[place] for place in asked], histories)
        for place, history, answer in zip(asked, histories, found, strict=True):
            answers[place] = answer
            talk = talks[place]
            if talk is None:
                continue
            if not answer.status.is_answer:
                ended.add(talk)
            question = benchmark.queries[contexts[place].query_id].text
            words = str(answer.fields.get("answer") or answer.raw or "")
            said[talk] = (*history, Turn(question, words))
    return [answers[place] for place in range(len(contexts))]


def without_later_turns(
    benchmark: Benchmark, contexts: Sequence[Context], dropped: Collection[Context]
) -> list[Context]:
    """The contexts but for those that are `dropped`, and for the turns that come after
    one of them in its conversation.
    """
    ends: dict[Talk, int] = {}
    for context in dropped:
        if talk := talk_of(benchmark, context):
            turn = benchmark.queries[context.query_id].turn
            ends[talk] = min(turn, ends.get(talk, turn))
    kept = []
    for context in contexts:
        talk, turn = talk_of(benchmark, context), benchmark.queries[context.query_id].turn
        over = talk is not None and talk in ends and turn >= ends[talk]
        if context not in dropped and not over:
            kept.append(context)
    return kept


def talk_of(benchmark: Benchmark, context: Context) -> Talk | None:
    """The conversation that a context is a turn of; None for a question alone."""
    conversation = benchmark.queries[context.query_id].conversation_id
    if conversation is None:
        return None
    return (conversation, context.setting, context.k, context.m, context.draw)


def _not_asked() -> Answer:
    """What stands for the answer to a turn after a failed one; no store holds it."""
    why = Failure(Status.EARLIER_TURN, "its call failed, so that this turn was not asked")
    return Answer(answer_id="", raw=None, failure=why)


def _check_whole(benchmark: Benchmark, contexts: Sequence[Context]) -> None:
    """Raise `VragError` for a turn without one that the benchmark has before it."""
    turns: dict[str, set[int]] = defaultdict(set)
    for query in benchmark.queries.values():
        if query.conversation_id is not None:
            turns[query.conversation_id].add(query.turn)
    present: dict[Talk, set[int]] = defaultdict(set)
    for context in contexts:
        if talk := talk_of(benchmark, context):
            present[talk].add(benchmark.queries[context.query_id].turn)
    for (conversation, setting, k, _, _), there in present.items():
        earlier = {turn for turn in turns[conversation] if turn < max(there)}
        if missing := sorted(earlier - there):
            raise VragError(
                f"conversation {conversation!r}, {setting} with k = {k}: turn {missing[0]} is not"
                f" among the contexts, but the later turn {max(there)} is. Add a context for each"
                " earlier turn, or leave the later ones out."
            )
