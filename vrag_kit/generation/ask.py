"""Query a model with prompts: reuse stored answers, and generate and store the missing ones.
Prompts are sent in batches or in parallel calls.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
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
    ImageInfo,
    answer_ids,
    serialize_prompt,
)
from vrag_kit.log import logger, progress, record_calls
from vrag_kit.types import Answer, Failure, Prompt, Status


def check_budget(
    generator: Generator, store: AnswerStore, expected: CostEstimate | None = None
) -> None:
    """Raise `VragError` when a model's answers in a store have cost its `max_cost`, or would exceed
    it with the `expected` cost.
    """
    if generator.max_cost is None:
        return
    name, cap = generator.name, generator.max_cost
    spent = store.total_cost(name)
    if expected is None and spent >= cap:
        raise VragError(
            f"{name}: stopped, its answers in {store.path.name} have cost {spent:.2f} US dollars"
            f" and max_cost is {cap:g}. Answers are kept; raise max_cost in the model's entry to go"
            " on."
        )
    if expected and expected.cost is not None and spent + expected.cost > cap:
        raise VragError(
            f"{name}: this will cost about {expected.cost:,.2f} US dollars, after {spent:,.2f} so"
            f" far, and max_cost is {cap:g}. Nothing was asked. Set max_cost in the model's entry,"
            f" as in {{model: …, max_cost: {ceil(spent + expected.cost)}}}, or ask for less."
        )


SERVED = "served"
"""Field of an answer: the model name that the endpoint reports."""


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
_NOTE_EVERY = 30.0
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
    model = (generator.fingerprint, generator.decoding)
    ids = answer_ids(prompts, pictures, *model, task.sample)
    owned = zip(owners or [""] * len(ids), prompts, strict=True)
    asked = dict(zip(ids, owned, strict=True))
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
        asker = _Asker(generator, store, todo, retry, pictures, task)
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
    return [answers[answer_id] for answer_id in ids]


def _note_served(generator: Generator, answers: Sequence[Answer], task: Task) -> None:
    """Print from which models the answers came, if others than the requested one, or several
    versions of it.

    A version is the name followed by a date or number ("gpt-4o-2024-08-06"), or a revision
    ("@main", ":latest"); "gpt-4o-mini" is another model than "gpt-4o".
    """
    if "model_id" not in generator.sent:  # it is no endpoint's
        return
    requested = generator.sent["model_id"]
    counts = Counter(each.fields[SERVED] for each in answers if SERVED in each.fields)
    version = re.compile(rf"{re.escape(requested)}((-\d+)+|[@:].*)?")
    others = Counter({name: counts[name] for name in counts if not version.fullmatch(name)})
    note = f"note: {generator.name}: "
    if others:
        logger.info(
            f"{note}{others.total():,} of {counts.total():,} {task.what} came from"
            f" {quote_with_counts(others)}, not {requested!r}"
        )
    elif len(counts) > 1:
        logger.info(f"{note}{task.what} came from {quote_with_counts(counts)}")


def stored_answers(
    generator: Generator, prompts: Sequence[Prompt], store: AnswerStore, sample: int
) -> list[Answer | None]:
    """Return the stored answer to each prompt, in order, or None; no model is queried."""
    pictures = store.image_info(iter_images(prompts))
    ids = answer_ids(prompts, pictures, generator.fingerprint, generator.decoding, sample)
    stored = store.read(ids)
    return [stored.get(answer_id) for answer_id in ids]


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

    def ask_all(self, batch_size: int) -> int:
        """Print and check the cost estimate, ask all questions, and wait for other processes.
        Returns how many were asked here.
        """
        generator, task = self.generator, self.task
        sizes = {where: picture.size for where, picture in self.pictures.items()}
        prompts = [owned.prompt for owned in self.todo.values()] * (task.samples - task.sample)
        estimate = generator.estimate_cost(prompts, sizes)
        logger.info(f"{generator.name}: {estimate}")
        check_budget(generator, self.store, estimate)
        generator.prepare()
        size = (generator.max_batch or batch_size) if generator.batched else 1
        batches = make_batches(self.todo, size, generator)
        new = 0
        with self.store.renew_leases():
            with progress(f"{task} of {generator.name}", len(self.todo), "prompts") as bar:
                for count, length in _at_once(self._ask, batches, generator.concurrency):
                    new += count
                    bar.update(length)
            return new + self._wait(size)

    def _ask(self, batch: Sequence[str]) -> int:
        """Ask those of a batch that are free; returns how many they were."""
        check_budget(self.generator, self.store)
        ours = self.store.claim(batch, retry=self.retry)
        if not ours:
            return 0
        prompts = [self.todo[answer_id].prompt for answer_id in ours]
        replies = self.generator.generate(prompts, sample=self.task.sample)
        answers = [self._answer(*each) for each in zip(ours, replies, strict=True)]
        asked = zip(ours, prompts, strict=True)
        stored = {each: serialize_prompt(prompt, self.pictures) for each, prompt in asked}
        self.store.write(answers, stored)
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

    def _wait(self, size: int) -> int:
        """Wait for questions that other processes are asking, and ask those that they abandon.
        Returns how many were asked here. The store is polled less and less often.
        """
        new, noted = 0, 0.0
        pause = _SHORTEST_PAUSE
        while missing := self.store.unanswered(list(self.todo), retry=self.retry):
            free = self.store.free(missing, retry=self.retry)
            if free:
                new += sum(self._ask(free[at : at + size]) for at in range(0, len(free), size))
                pause = _SHORTEST_PAUSE
                continue
            if time.monotonic() - noted > _NOTE_EVERY:
                count = f"{len(missing):,} of these questions"
                logger.info(f"waiting for another notebook or process, which is asking {count}")
                noted = time.monotonic()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return new


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
                count = f"{len(running)} calls are under way"
                logger.info(f"stopping: {count} and are waited for; interrupt again to drop them")
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
    """Print how a round ended: where answers came from, why some failed, by kind with an example,
    and how many are without "Answer:". Zeros are left out.
    """
    failures = defaultdict[Status, list[Failure]](list)
    for answer in answers:
        if answer.failure:
            failures[answer.status].append(answer.failure)
    silent = [kind for kind in failures if task.silence_counts and kind.is_answer]
    n_silent = sum(len(failures[kind]) for kind in silent)
    n_failed = sum(map(len, failures.values())) - n_silent
    counts = {**came, "empty or cut off": n_silent, "failed": n_failed}
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    logger.info(f"{label}: {', '.join(parts) or 'none'}; {seconds:.0f} s")
    for kind, alike in failures.items():
        line = f"failed {len(alike):,} times: {alike[0]}"
        if kind in silent:
            be = "is" if len(alike) == 1 else "are"
            words = f"of the answers {be} {kind} ({alike[0].words}), counted as wrong"
            line = f"{len(alike):,} {words}"
        logger.info(f"  {line}")
    usable = [answer for answer in answers if answer.failure is None]
    if untagged := sum(bool(answer.fields.get("untagged")) for answer in usable):
        logger.info(f"  {untagged:,} answers without 'Answer:', judged as a whole")
