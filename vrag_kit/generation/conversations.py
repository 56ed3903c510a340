"""Conversations, turn by turn: the next prompt holds what the model itself said before.

All conversations go on together, so that batches stay full; the store's key of a turn
fixes the whole path to it, since the answers on it are part of the prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from vrag_kit.types import Answer, Benchmark, Context, Turn

History = tuple[Turn, ...]
Path = tuple[str, str, int, int | None, int]  # conversation, setting, k, m, draw


def turn_by_turn(
    benchmark: Benchmark,
    contexts: Sequence[Context],
    ask: Callable[[Sequence[Context], Sequence[History]], Sequence[Answer]],
) -> list[Answer]:
    """The answer to each context, in order.

    `ask` answers some contexts, each after its history: first turns and questions that
    stand alone together, then second turns, and so on. A history are the turns before
    in the same setting, k, m and draw; of an answer that failed it holds the words
    there are, or none.
    """
    places: dict[int, list[int]] = defaultdict(list)
    for place, context in enumerate(contexts):
        query = benchmark.queries[context.query_id]
        places[query.turn if query.conversation_id is not None else 0].append(place)
    said: dict[Path, History] = {}
    answers: dict[int, Answer] = {}
    for turn in sorted(places):
        asked = [contexts[place] for place in places[turn]]
        paths = [_path(benchmark, context) for context in asked]
        histories = [said.get(path, ()) if path else () for path in paths]
        found = ask(asked, histories)
        for place, path, history, answer in zip(places[turn], paths, histories, found, strict=True):
            answers[place] = answer
            if path:
                question = benchmark.queries[contexts[place].query_id].text
                words = answer.fields.get("answer") or answer.raw or ""
                said[path] = (*history, Turn(question, words))
    return [answers[place] for place in range(len(contexts))]


def _path(benchmark: Benchmark, context: Context) -> Path | None:
    """What the turns of one conversation have in common; None for a question alone."""
    conversation = benchmark.queries[context.query_id].conversation_id
    if conversation is None:
        return None
    return (conversation, context.setting, context.k, context.m, context.draw)
