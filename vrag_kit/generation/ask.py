"""Query a model with prompts: reuse stored answers, and generate and store the missing ones.
Prompts are sent in batches or in parallel calls.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil

from vrag_kit.config import Hardware
from vrag_kit.errors import VragError
from vrag_kit.generation.batching import QueryPrompt, make_batches
from vrag_kit.generation.generators import CostEstimate, Generator, Reply, iter_images
from vrag_kit.generation.prompts import Parser, parse_tagged
from vrag_kit.generation.store import AnswerStore
from vrag_kit.generation.store_layout import (
    AnswerKeys,
    ImageInfo,
    prompt_key_json,
    serialize_prompt,
)
from vrag_kit.log import logger, progress, record_calls
from vrag_kit.types import Answer, Failure, Prompt, Status

_FRESH = 30.0
"""Seconds after which other processes' spending is looked up again."""


class Budget:
    """Tracks what a model's answers in a store have cost, in US dollars, and enforces its cap.
    Spending of other processes is included within half a minute.
    """

    def __init__(self, generator: Generator, store: AnswerStore) -> None:
        self._generator = generator
        self._store = store
        self._lock = threading.Lock()
        self._spent = 0.0
        self._read_at = float("-inf")

    def check_estimate(self, estimate: CostEstimate) -> None:
        """Raise `VragError` when an estimate exceeds what may still be spent."""
        cap = self._generator.max_cost
        if cap is None or estimate.cost is None:
            return
        spent = self._store.total_cost(self._generator.name)
        if spent + estimate.cost > cap:
            raise VragError(
                f"{self._generator.name}: this will cost about {estimate.cost:,.2f} US dollars,"
                f" after {spent:,.2f} so far, and max_cost is {cap:g}. Nothing was asked. Set"
                " max_cost in the model's entry, as in {model: …, max_cost:"
                f" {ceil(spent + estimate.cost)}}}, or ask for less."
            )

    def check(self) -> None:
        """Raise `VragError` when the cap is reached."""
        cap = self._generator.max_cost
        if cap is None:
            return
        with self._lock:
            if time.monotonic() - self._read_at > _FRESH:
                self._spent = self._store.total_cost(self._generator.name)
                self._read_at = time.monotonic()
            if self._spent >= cap:
                raise VragError(
                    f"{self._generator.name}: stopped, its answers in {self._store.path.name} have"
                    f" cost {self._spent:.2f} US dollars and max_cost is {cap:g}. Answers are kept;"
                    " raise max_cost in the model's entry to go on."
                )

    def spend(self, reply: Reply) -> None:
        """Add the cost of a reply that was just stored."""
        if cost := self._generator.cost(reply.tokens):
            with self._lock:
                self._spent += cost


SERVED = "served"
"""Field of an answer: the model name that the endpoint reports."""


def served_name_warning(asked: str, served: Sequence[str], what: str) -> str:
    """Return a warning if answers (`what`) came from other models than `asked`, or several versions
    of it; "" if all came from one.

    A version is the name followed by a date or number ("gpt-4o-2024-08-06"), or a revision
    ("@main", ":latest"); "gpt-4o-mini" is another model than "gpt-4o".
    """
    counts = Counter(served)
    version = re.compile(rf"{re.escape(asked)}((-\d+)+|[@:].*)?")
    others = Counter({name: counts[name] for name in counts if not version.fullmatch(name)})
    if others:
        came = f"{others.total():,} of {len(served):,} {what} came from {quote_with_counts(others)}"
        return f"{came}, not {asked!r}"
    return f"{what} came from {quote_with_counts(counts)}" if len(counts) > 1 else ""


def quote_with_counts(names: Counter[str]) -> str:
    """Return names in quotes; if there are several, each with its count."""
    if len(names) == 1:
        return repr(next(iter(names)))
    return ", ".join(f"{name!r} ({count:,})" for name, count in names.most_common())


Watch = Callable[[Sequence[tuple[Prompt, Answer]]], None]
"""Receives replies as they arrive; an exception that it raises stops the round."""

_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
"""Seconds between two looks at what others are asking."""
_SAY_AGAIN = 30.0
"""Seconds between messages that another process is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One round of questions: what is generated, how it is parsed, and which sample it is."""

    what: str = "answers"
    """What is generated, as messages name it: "answers", "verdicts"."""
    read: Parser = parse_tagged
    """Parses an answer's text into fields; the field "answer" must not be empty. With the field
    "enough", a truncated reply counts as an answer; with "unreadable", there is no answer.
    """
    sample: int = 0
    """Index of this sample, from 0."""
    samples: int = 1
    """Number of samples."""
    silence_counts: bool = False
    """Whether an empty or truncated reply is the model's answer, which is not retried. From a
    judge, or a question writer, it is a failure.
    """
    watch: Watch | None = None
    """Receives the stored answers before the first call, and then each new reply. It is called from
    several threads, and not at all when there is nothing to ask.
    """

    def __str__(self) -> str:
        if self.samples == 1:
            return self.what
        return f"{self.what}, sample {self.sample + 1} of {self.samples},"


def ask_prompts(
    generator: Generator,
    prompts: Sequence[Prompt],
    store: AnswerStore,
    *,
    owners: Sequence[str] | None = None,
    hardware: Hardware | None = None,
    task: Task | None = None,
) -> list[Answer]:
    """Return the answer to each prompt, in order; equal prompts share one answer.

    `owners` (one query id per prompt) says which prompts share images. A question that another
    process is asking is waited for. Prints the cost estimate before the first call, for `task`
    round and those of further samples; afterwards how many answers came from the store, are new, or
    failed. Raises `VragError` when the estimate or the cost exceeds the model's max_cost, and when
    the model cannot be queried; answers received so far are kept.
    """
    hardware, task = hardware or Hardware(), task or Task()
    began = time.monotonic()
    pictures = store.image_info(iter_images(prompts))
    answer_ids = _answer_ids(generator, prompts, pictures, task.sample)
    owned = zip(owners or [""] * len(answer_ids), prompts, strict=True)
    asked = dict(zip(answer_ids, owned, strict=True))
    answers = store.read(list(asked))
    retry = store.failures(asked) if hardware.retry_failures else {}
    retry = {each: when for each, when in retry.items() if not _stands(answers[each], task)}
    todo = {
        each: QueryPrompt(*asked[each]) for each in asked if each not in answers or each in retry
    }
    new = 0
    if todo and task.watch:
        task.watch([(asked[each][1], answers[each]) for each in asked if each not in todo])
    if todo:
        budget = Budget(generator, store)
        asker = _Asker(generator, store, todo, retry, pictures, task, budget)
        new = asker.ask_all(hardware.batch_size)
        answers |= store.read(list(todo))
    answers = {answer_id: _read(answer, task) for answer_id, answer in answers.items()}
    came = {
        "from the store": len(asked) - len(todo),
        "new": new,
        "by another process": len(todo) - new,
    }
    seconds = time.monotonic() - began
    _report(task, f"{task} of {generator.name}", came, list(answers.values()), seconds)
    _note_served(generator, list(answers.values()), task)
    lost = [each.failure for each in answers.values() if each.failure and not _stands(each, task)]
    record_calls("model", generator.name, len(answers), lost)
    return [answers[answer_id] for answer_id in answer_ids]


def _note_served(generator: Generator, answers: Sequence[Answer], task: Task) -> None:
    """Print the names under which an endpoint answered, where they are not the asked one."""
    if "model_id" in generator.sent:  # it is an endpoint's
        served = [each.fields[SERVED] for each in answers if SERVED in each.fields]
        if line := served_name_warning(generator.sent["model_id"], served, task.what):
            logger.info(f"note: {generator.name}: {line}")


def stored_answers(
    generator: Generator, prompts: Sequence[Prompt], store: AnswerStore, sample: int
) -> list[Answer | None]:
    """Return the stored answer to each prompt, in order, or None; no model is queried."""
    pictures = store.image_info(iter_images(prompts))
    answer_ids = _answer_ids(generator, prompts, pictures, sample)
    stored = store.read(answer_ids)
    return [stored.get(answer_id) for answer_id in answer_ids]


def _answer_ids(
    generator: Generator,
    prompts: Sequence[Prompt],
    pictures: Mapping[str, ImageInfo],
    sample: int,
) -> list[str]:
    keys = AnswerKeys(generator.fingerprint, generator.decoding, sample)
    return keys.answer_ids(prompt_key_json(each, pictures) for each in prompts)


@dataclass(frozen=True, slots=True)
class _Asker:
    """Asks the questions of one round that the store does not answer."""

    generator: Generator
    store: AnswerStore
    todo: Mapping[str, QueryPrompt]
    retry: Mapping[str, float]
    """Failures that are retried, with the time at which they were stored."""
    pictures: Mapping[str, ImageInfo]
    task: Task
    budget: Budget

    def ask_all(self, batch_size: int) -> int:
        """Print and check the cost estimate, ask all questions, and wait for other processes.
        Returns how many were asked here.
        """
        self._estimate()
        self.generator.prepare()
        size = getattr(self.generator, "at_once", batch_size) if self.generator.batched else 1
        label = f"{self.task} of {self.generator.name}"
        new = 0
        with self.store.renew_leases():
            parts = make_batches(self.todo, size, self.generator)
            with progress(label, len(self.todo), "prompts") as bar:
                for count, length in _at_once(self._ask, parts, self.generator.concurrency):
                    new += count
                    bar.update(length)
            return new + self._wait(list(self.todo), size)

    def _estimate(self) -> None:
        """Print the cost estimate of this round and those of further samples, and check it."""
        rounds = self.task.samples - self.task.sample
        prompts = [owned.prompt for owned in self.todo.values()] * rounds
        sizes = {where: picture.size for where, picture in self.pictures.items()}
        estimate = self.generator.forecast(prompts, sizes)
        logger.info(f"{self.generator.name}: {estimate}")
        self.budget.check_estimate(estimate)

    def _ask(self, batch: Sequence[str]) -> int:
        """Ask those of a batch that are free; returns how many they were."""
        self.budget.check()
        ours = self.store.claim(batch, retry=self.retry)
        if not ours:
            return 0
        prompts = [self.todo[answer_id].prompt for answer_id in ours]
        replies = self.generator.generate(prompts, sample=self.task.sample)
        answers = [
            self._answer(answer_id, reply) for answer_id, reply in zip(ours, replies, strict=True)
        ]
        asked = zip(ours, prompts, strict=True)
        stored = {each: serialize_prompt(prompt, self.pictures) for each, prompt in asked}
        self.store.write(answers, stored)
        for reply in replies:
            self.budget.spend(reply)
        if self.task.watch:
            self.task.watch(list(zip(prompts, answers, strict=True)))
        return len(ours)

    def _answer(self, answer_id: str, reply: Reply) -> Answer:
        """A reply as it is stored, with what it cost."""
        generator = self.generator
        fields = dict(reply.fields)
        if cost := generator.cost(reply.tokens):
            fields["cost"] = cost  # in US dollars
        return Answer(
            answer_id=answer_id,
            sample=self.task.sample,
            raw=reply.raw,
            fields=fields,
            failure=reply.failure,
            sent={"model": generator.name, **generator.decoding, **generator.sent},
            tokens=reply.tokens,
        )

    def _wait(self, todo: Sequence[str], size: int) -> int:
        """Wait for questions that other processes are asking, and ask those that they abandon.
        Returns how many were asked here. The store is polled less and less often.
        """
        new, said = 0, 0.0
        pause = _SHORTEST_PAUSE
        while missing := self._missing(todo):
            free = self.store.free(missing, retry=self.retry)
            parts = [free[start : start + size] for start in range(0, len(free), size)]
            got = sum(self._ask(part) for part in parts)
            new += got
            if got:
                pause = _SHORTEST_PAUSE
                continue
            if time.monotonic() - said > _SAY_AGAIN:
                logger.info(
                    f"waiting for another notebook or process, which is asking {len(missing):,}"
                    " of these questions: each is asked once",
                )
                said = time.monotonic()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return new

    def _missing(self, todo: Sequence[str]) -> list[str]:
        """The questions without an answer, and failures that nobody has asked again."""
        known, failed = self.store.read(todo), self.store.failures(self.retry)
        return [
            answer_id
            for answer_id in todo
            if answer_id not in known or failed.get(answer_id, -1.0) == self.retry.get(answer_id)
        ]


def _at_once(
    ask: Callable[[Sequence[str]], int], batches: Iterator[Sequence[str]], threads: int
) -> Iterator[tuple[int, int]]:
    """(new answers, size) of each batch, `threads` of them at a time.

    After the first error no further batch is begun; those under way are finished, then
    it is raised.
    """
    if threads == 1:
        for batch in batches:
            yield ask(batch), len(batch)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: dict[Future[int], int] = {}
        while True:
            for batch in islice(batches, threads - len(running)):
                running[pool.submit(ask, batch)] = len(batch)
            if not running:
                return
            try:
                finished = wait(running, return_when=FIRST_COMPLETED).done
            except KeyboardInterrupt:
                logger.info(
                    f"stopping: {len(running)} calls are under way and are waited for, so that"
                    " their answers are kept; interrupt again to drop them",
                )
                raise
            for done in finished:
                yield done.result(), running.pop(done)


def _read(answer: Answer, task: Task) -> Answer:
    """Return a stored answer with the fields that the task's parser finds in its text."""
    if not _stands(answer, task):
        return answer
    read = task.read(answer.raw or "")
    if "unreadable" in read and answer.is_placeholder:
        read = parse_tagged(answer.raw or "")  # nobody was asked for the form
    fields = {**answer.fields, **read}
    failure = answer.failure
    if answer.status is Status.TRUNCATED and fields.get("enough"):
        failure = None
    if failure is None and "unreadable" in fields:
        failure = Failure(Status.UNREADABLE, str(fields["unreadable"]))
    if failure is None and fields.get("answer") == "":
        failure = Failure(Status.EMPTY, "no answer in its text")
    return replace(answer, fields=fields, failure=failure)


def _stands(answer: Answer, task: Task) -> bool:
    """Whether the model replied, even badly; a failed call is no reply."""
    return answer.failure is None or (task.silence_counts and answer.status.is_answer)


def _report(
    task: Task, label: str, came: Mapping[str, int], answers: Sequence[Answer], seconds: float
) -> None:
    """Print how a round ended: where answers came from, why some failed, kind by kind
    with an example, and how many are without "Answer:". What is 0 is left out.
    """
    failures = [answer.failure for answer in answers if answer.failure]
    failed = sum(not _stands(answer, task) for answer in answers if answer.failure)
    counts = {**came, "empty or cut off": len(failures) - failed, "failed": failed}
    told = [f"{count:,} {what}" for what, count in counts.items() if count] or ["none"]
    logger.info(f"{label}: {', '.join(told)}; {seconds:.0f} s")
    for kind in dict.fromkeys(failure.kind for failure in failures):
        alike = [failure for failure in failures if failure.kind == kind]
        line = f"failed {len(alike):,} times: {alike[0]}"
        if task.silence_counts and kind.is_answer:
            be, count = ("is", "it counts") if len(alike) == 1 else ("are", "they count")
            line = f"{len(alike):,} of the answers {be} {kind} ({alike[0].words}); {count} as wrong"
        logger.info(f"  {line}")
    usable = [answer for answer in answers if answer.failure is None]
    if untagged := sum(bool(answer.fields.get("untagged")) for answer in usable):
        logger.info(f"  {untagged:,} answers without 'Answer:', judged as a whole")
