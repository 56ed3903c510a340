"""Conversations, turn by turn: by default, a prompt contains the model's earlier answers.

All conversations advance together, so that batches stay full. A turn's key in the store determines
the whole path to it, since the earlier answers are part of the prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from vrag_kit.errors import VragError
from vrag_kit.types import Answer, Benchmark, Context, Failure, Query, Status, Turn

History = tuple[Turn, ...]
Thread = tuple[str, str, int, int | None, int]
"""Key of a conversation: its id, setting, k, m and draw."""
HISTORIES = ("generated", "reference", "none")
"""What a prompt contains of earlier turns: the model's own answers, the reference answers, or
nothing.
"""
Ask = Callable[[Sequence[Context], Sequence[History]], Sequence[Answer]]
Over = Callable[[Sequence[Context], Sequence[Answer]], Sequence[bool]]


def run_conversations(
    benchmark: Benchmark,
    contexts: Sequence[Context],
    ask: Ask,
    *,
    history: str = "generated",
    over: Over | None = None,
) -> list[Answer]:
    """Return the answer to each context, in order.

    `ask` answers some contexts, each with its history: first turns and standalone questions
    together, then second turns, and so on. A history holds the earlier turns in the same setting,
    k, m and draw, with the answers that `history` names (one of `HISTORIES`); an empty answer gives
    an empty turn. `over` receives the answered turns of conversations that have later ones, and
    returns which end there: their later turns are not asked, and have `Status.STOPPED`. After a
    turn whose call failed, the later turns fail with `Status.EARLIER_TURN`.

    Raises `VragError`, before anything is asked, for a turn without an earlier one, for a duplicate
    turn, and for a reference answer that is needed but hidden.
    """
    threads = [conversation_key(benchmark, context) for context in contexts]
    _check_whole(benchmark, contexts, threads)
    if history == "reference":
        _check_references(benchmark, contexts)
    going = _Going(history)
    places: dict[int, list[int]] = defaultdict(list)
    for place, (context, thread) in enumerate(zip(contexts, threads, strict=True)):
        turn = benchmark.queries[context.query_id].turn if thread else 0
        places[turn].append(place)
        going.last[thread] = max(turn, going.last.get(thread, 0))
    answers: dict[int, Answer] = {}
    for turn in sorted(places):
        for place in places[turn]:
            if (thread := threads[place]) in going.ended:
                answers[place] = going.ended[thread]
        asked = [place for place in places[turn] if place not in answers]
        histories = [going.said.get(threads[place], ()) for place in asked]
        found = ask([contexts[place] for place in asked], histories) if asked else []
        for place, answer in zip(asked, found, strict=True):
            answers[place] = answer
            if thread := threads[place]:
                going.on(thread, benchmark.queries[contexts[place].query_id], answer)
        if over is not None:
            heard = [place for place in asked if going.has_more(threads[place], turn)]
            ends = over([contexts[place] for place in heard], [answers[place] for place in heard])
            stopped = [threads[place] for place, end in zip(heard, ends, strict=True) if end]
            going.ended.update(dict.fromkeys(stopped, _STOPPED))
    return [answers[place] for place in range(len(contexts))]


@dataclass(slots=True)
class _Going:
    """Where each conversation has got to."""

    history: str
    last: dict[Thread | None, int] = field(default_factory=dict)
    """Its last turn."""
    said: dict[Thread | None, History] = field(default_factory=dict)
    """What its next turn is told."""
    ended: dict[Thread | None, Answer] = field(default_factory=dict)
    """What stands for the answers to its later turns, which are not asked."""

    def on(self, thread: Thread, query: Query, answer: Answer) -> None:
        """Go on after an answer."""
        if not answer.status.is_answer:
            self.ended[thread] = _FAILED
        if self.history == "none":
            return
        words = str(answer.fields.get("answer") or answer.raw or "")
        told = words if self.history == "generated" else query.answers[0]
        self.said[thread] = (*self.said.get(thread, ()), Turn(query.text, told))

    def has_more(self, thread: Thread | None, turn: int) -> bool:
        """Whether a turn comes after this one, and is to be asked."""
        return thread is not None and self.last[thread] > turn and thread not in self.ended


def drop_later_turns(
    benchmark: Benchmark, contexts: Sequence[Context], dropped: Collection[Context]
) -> list[Context]:
    """Return the contexts without those that are `dropped`, and without the later turns of their
    conversations.
    """
    ends: dict[Thread, int] = {}
    for context in dropped:
        if thread := conversation_key(benchmark, context):
            turn = benchmark.queries[context.query_id].turn
            ends[thread] = min(turn, ends.get(thread, turn))
    kept = []
    for context in contexts:
        thread, turn = (
            conversation_key(benchmark, context),
            benchmark.queries[context.query_id].turn,
        )
        over = thread is not None and thread in ends and turn >= ends[thread]
        if context not in dropped and not over:
            kept.append(context)
    return kept


def conversation_key(benchmark: Benchmark, context: Context) -> Thread | None:
    """Return the key of a context's conversation; None for a standalone question."""
    conversation = benchmark.queries[context.query_id].conversation_id
    if conversation is None:
        return None
    return (conversation, context.setting, context.k, context.m, context.draw)


def _not_asked(kind: Status, why: str) -> Answer:
    """What stands for the answer to a turn that is not asked; no store holds it."""
    return Answer(answer_id="", raw=None, failure=Failure(kind, why))


_FAILED = _not_asked(Status.EARLIER_TURN, "its call failed, so that this turn was not asked")
_STOPPED = _not_asked(Status.STOPPED, "the conversation was over before this turn")


def _check_whole(
    benchmark: Benchmark, contexts: Sequence[Context], threads: Sequence[Thread | None]
) -> None:
    """Raise `VragError` for a turn without all that come before it, and for one that is
    there twice.
    """
    present: dict[Thread, dict[int, str]] = defaultdict(dict)
    for context, thread in zip(contexts, threads, strict=True):
        if thread is None:
            continue
        turn = benchmark.queries[context.query_id].turn
        if turn in present[thread]:
            raise VragError(
                f"{_named(thread)}: turn {turn} is there twice, as query"
                f" {present[thread][turn]!r} and {context.query_id!r}. Keep one of them."
            )
        present[thread][turn] = context.query_id
    for thread, there in present.items():
        if missing := sorted(set(range(max(there))) - set(there)):
            raise VragError(
                f"{_named(thread)}: turn {missing[0]} is not among the contexts, but the later"
                f" turn {max(there)} is. Add a context for each earlier turn, or leave the later"
                " ones out."
            )


def _check_references(benchmark: Benchmark, contexts: Sequence[Context]) -> None:
    """Raise `VragError` for a turn whose accepted answer is hidden."""
    for context in contexts:
        query = benchmark.queries[context.query_id]
        if query.conversation_id is not None and not query.answers:
            raise VragError(
                f"query {query.query_id!r} has no accepted answer to tell; set history to"
                ' "generated" or "none".'
            )


def _named(thread: Thread) -> str:
    return f"conversation {thread[0]!r}, {thread[1]} with k = {thread[2]}"
