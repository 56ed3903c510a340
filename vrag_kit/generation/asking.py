"""Ask a model about every prompt, once: what the store holds is read, the rest is asked
in batches, or several at once, and stored as it comes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import groupby, islice
from math import ceil
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.generator import Generator, Reply, images_of, read_answer
from vrag_kit.generation.keys import answer_key, stored_prompt
from vrag_kit.progress import track
from vrag_kit.types import Answer, Failure, Prompt, Status

_BLOCK = 16
"""Owners whose prompts are asked together, so that their pictures recur while they are
remembered.
"""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two looks at what others are asking."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A prompt that must be asked, as it is stored."""

    owner: str
    prompt: Prompt
    stored: list[dict[str, Any]]


class _Purse:
    """What a model's answers in a store have cost, in US dollars, so that a run stops
    at its cap; other processes' spending is seen within half a minute.
    """

    def __init__(self, generator: Generator, store: AnswerStore) -> None:
        self._generator, self._store, self._lock = generator, store, threading.Lock()
        self._spent, self._read_at = 0.0, -1e9

    def check(self) -> None:
        """Raise `VragError` when the cap is reached."""
        cap = self._generator.max_cost
        if cap is None:
            return
        with self._lock:
            if time.monotonic() - self._read_at > 30:
                self._spent, self._read_at = (
                    self._store.spent(self._generator.name),
                    time.monotonic(),
                )
            if self._spent >= cap:
                raise VragError(
                    f"{self._generator.name}: stopped, its answers in {self._store.path.name} have"
                    f" cost {self._spent:.2f} US dollars and max_cost is {cap:g}. Answers are kept;"
                    " raise max_cost in the model's entry to go on."
                )

    def pay(self, reply: Reply) -> None:
        """Count a reply that was just stored."""
        if cost := self._generator.cost(reply.tokens):
            with self._lock:
                self._spent += cost


def ask_prompts(
    generator: Generator,
    prompts: Sequence[Prompt],
    store: AnswerStore,
    *,
    owners: Sequence[str] | None = None,
    batch_size: int = 16,
    sample: int = 0,
    rounds: int = 1,
    retry_failures: bool = False,
    what: str = "answers",
    read: Callable[[str], Mapping[str, Any]] = read_answer,
) -> list[Answer]:
    """The answer to each prompt, in order; equal prompts share one.

    `owners` (a query id each) say which prompts share pictures; `read` finds an
    answer's fields in its words. A question that another process is asking is waited
    for. Before the first call the forecast is printed, for this and all `rounds` of
    samples that are to follow; afterwards how many answers came from the store, are
    new, and failed. Raises `VragError` when the forecast or the cost passes the model's
    max_cost, and when the model cannot be asked; what was answered is kept in every
    case.
    """
    pictures = store.pictures(image for prompt in prompts for image in images_of(prompt))
    asked: dict[str, _Question] = {}
    answer_ids = []
    for owner, prompt in zip(owners or [""] * len(prompts), prompts, strict=True):
        stored = stored_prompt(prompt, pictures)
        answer_id = answer_key(generator.fingerprint, stored, generator.decoding, sample)
        asked[answer_id] = _Question(owner, prompt, stored)
        answer_ids.append(answer_id)
    again = store.failures(asked) if retry_failures else {}
    answers = store.read(list(asked))
    todo = [answer_id for answer_id in asked if answer_id not in answers or answer_id in again]
    began, label, new = time.monotonic(), f"{what} of {generator.name}", 0
    if todo:
        _tell(
            generator,
            [asked[answer_id].prompt for answer_id in todo] * rounds,
            {where: picture.size for where, picture in pictures.items()},
            store,
        )
        generator.prepare()
        purse = _Purse(generator, store)

        def answer(batch: Sequence[str]) -> int:
            purse.check()
            ours = store.claim(batch, again=again)
            if ours:
                replies = generator.generate(
                    [asked[answer_id].prompt for answer_id in ours], sample=sample
                )
                store.write(
                    [
                        _answer(answer_id, reply, generator, sample)
                        for answer_id, reply in zip(ours, replies, strict=True)
                    ],
                    {answer_id: asked[answer_id].stored for answer_id in ours},
                )
                for reply in replies:
                    purse.pay(reply)
            return len(ours)

        size = batch_size if generator.batched else 1
        with store.renewing():
            counts = _at_once(
                answer,
                _batches(todo, asked, size),
                generator.concurrency,
            )
            new = sum(
                count
                for count, _ in track(
                    counts, label, len(todo), "prompts", size=lambda done: done[1]
                )
            )
            late, found = _wait(todo, again, store, answer, size)
        new, answers = new + late, answers | found
    answers = {answer_id: _read(answer, read) for answer_id, answer in answers.items()}
    failed = [answer.failure for answer in answers.values() if answer.failure]
    print(
        f"{label}: {len(asked) - len(todo):,} from the store, {new:,} new, {len(todo) - new:,} by"
        f" another process, {len(failed):,} failed; {time.monotonic() - began:.0f} s",
        flush=True,
    )
    _tell_failures(failed)
    if untagged := sum(_untagged(answer) for answer in answers.values()):
        print(f"  {untagged:,} answers without 'Answer:', judged as a whole", flush=True)
    return [answers[answer_id] for answer_id in answer_ids]


def _tell(
    generator: Generator,
    prompts: list[Prompt],
    sizes: Mapping[str, tuple[int, int]],
    store: AnswerStore,
) -> None:
    """Print the forecast; raise `VragError` when it passes what may be spent."""
    forecast = generator.forecast(prompts, sizes)
    print(f"{generator.name}: {forecast}", flush=True)
    if generator.max_cost is not None and forecast.cost is not None:
        spent = store.spent(generator.name)
        if spent + forecast.cost > generator.max_cost:
            raise VragError(
                f"{generator.name}: this will cost about {forecast.cost:,.2f} US dollars, after"
                f" {spent:,.2f} so far, and max_cost is {generator.max_cost:g}. Nothing was asked."
                " Set max_cost in the model's entry, as in {model: …, max_cost:"
                f" {ceil(spent + forecast.cost)}}}, or ask for less."
            )


def _batches(todo: list[str], asked: Mapping[str, _Question], size: int) -> Iterator[Sequence[str]]:
    """Prompts of a few owners at a time, those with as many images together: little
    padding, and pictures that recur while they are remembered.
    """
    block = {
        owner: i // _BLOCK
        for i, owner in enumerate(dict.fromkeys(question.owner for question in asked.values()))
    }
    order = sorted(
        todo,
        key=lambda answer_id: (
            block[asked[answer_id].owner],
            len(images_of(asked[answer_id].prompt)),
        ),
    )
    for _, part in groupby(order, key=lambda answer_id: block[asked[answer_id].owner]):
        together = list(part)
        for start in range(0, len(together), size):
            yield together[start : start + size]


def _at_once(
    answer: Callable[[Sequence[str]], int], batches: Iterator[Sequence[str]], threads: int
) -> Iterator[tuple[int, int]]:
    """(new answers, size) of each batch, `threads` of them at a time.

    After the first error no further batch is begun; those under way are finished, then
    it is raised.
    """
    if threads == 1:
        yield from ((answer(batch), len(batch)) for batch in batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: dict[Future[int], int] = {}
        while True:
            running |= {
                pool.submit(answer, batch): len(batch)
                for batch in islice(batches, threads - len(running))
            }
            if not running:
                return
            try:
                finished = wait(running, return_when=FIRST_COMPLETED).done
            except KeyboardInterrupt:
                print(
                    f"stopping: {len(running)} calls are under way and are waited for, so that"
                    " their answers are kept; interrupt again to drop them",
                    flush=True,
                )
                raise
            for done in finished:
                yield done.result(), running.pop(done)


def _answer(answer_id: str, reply: Reply, generator: Generator, sample: int) -> Answer:
    """A reply as it is stored, with what it cost."""
    fields = dict(reply.fields)
    if cost := generator.cost(reply.tokens):
        fields["cost"] = cost  # in US dollars
    return Answer(
        answer_id=answer_id,
        sample=sample,
        raw=reply.raw,
        fields=fields,
        failure=reply.failure,
        sent={"model": generator.name, **generator.decoding, **generator.sent},
        tokens=reply.tokens,
    )


def _read(answer: Answer, read: Callable[[str], Mapping[str, Any]]) -> Answer:
    """A stored answer with what is read out of its words, now and by this reader."""
    if answer.failure:
        return answer
    fields = {**answer.fields, **read(answer.raw or "")}
    failure = None
    if fields.get("answer") == "":
        failure = Failure(Status.EMPTY, "nothing after 'Answer:'")
    return replace(answer, fields=fields, failure=failure)


def _wait(
    todo: list[str],
    again: Mapping[str, float],
    store: AnswerStore,
    answer: Callable[[Sequence[str]], int],
    size: int,
) -> tuple[int, dict[str, Answer]]:
    """Wait for what other processes are asking, and ask what they gave up; returns how
    many became ours, and all answers to `todo`.

    A failure that is asked `again` counts as missing until it is written anew. While
    nothing happens the store is looked at ever more rarely.
    """
    new, pause, said = 0, _SHORTEST_PAUSE, 0.0
    while missing := _missing(todo, again, store):
        free = store.free(missing, again=again)
        got = sum(answer(free[start : start + size]) for start in range(0, len(free), size))
        new += got
        if time.monotonic() - said > 30:
            print(
                f"waiting: another process is asking {len(missing):,} of these questions",
                flush=True,
            )
            said = time.monotonic()
        pause = _SHORTEST_PAUSE if got else min(2 * pause, _LONGEST_PAUSE)
        time.sleep(pause)
    return new, store.read(todo)


def _missing(todo: Sequence[str], again: Mapping[str, float], store: AnswerStore) -> list[str]:
    """The questions without an answer, and failures that are as old as we know them."""
    known, failed = store.read(todo), store.failures(again)
    return [
        answer_id
        for answer_id in todo
        if answer_id not in known or failed.get(answer_id, -1.0) == again.get(answer_id)
    ]


def _tell_failures(failures: Sequence[Failure]) -> None:
    """Print why answers failed, kind by kind with an example."""
    for kind in dict.fromkeys(failure.kind for failure in failures):
        alike = [failure for failure in failures if failure.kind == kind]
        print(f"  failed {len(alike):,} times: {alike[0]}", flush=True)


def _untagged(answer: Answer) -> bool:
    return answer.failure is None and bool(answer.fields.get("untagged"))
