"""Query a model with prompts: reuse stored answers, and generate and store the missing ones.
Prompts are sent in batches or in parallel calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event

from vrag_kit.errors import VragError
from vrag_kit.generation.batching import QueryPrompt, make_batches
from vrag_kit.generation.generators import Generator, Reply, iter_images
from vrag_kit.generation.prompts import Parser, parse_tagged
from vrag_kit.generation.store import AnswerStore
from vrag_kit.generation.store_layout import ImageInfo, answer_ids, serialize_prompt
from vrag_kit.log import logger, progress, record_calls
from vrag_kit.types import Answer, Failure, Prompt, Status
from vrag_kit.workspace import Workspace

SERVED = "served"
"""Field of an answer: the model name that the endpoint reports."""
_PAUSE = 0.5
"""Seconds between two looks at what other processes are asking."""
Watch = Callable[[Sequence[tuple[Prompt, Answer]]], None]
"""Receives replies as they arrive; an exception that it raises stops the round."""


def check_budget(generator: Generator, store: AnswerStore, expected: float = 0.0) -> None:
    """Raise `VragError` when a model's answers in a store have cost its `max_cost`, or would with
    `expected` US dollars more.
    """
    if generator.max_cost is None:
        return
    spent = store.total_cost(generator.name)
    if spent + expected >= generator.max_cost:
        raise VragError(
            f"{generator.name}: its answers in {store.path.name} have cost {spent:.2f} US dollars,"
            f" those to come about {expected:,.2f}, and max_cost is {generator.max_cost:g}. Nothing"
            " more was asked, and answers are kept; raise max_cost in the model's entry to go on."
        )


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

    def of(self, generator: Generator) -> str:
        """Return what is generated, by which model, for messages."""
        sample = f", sample {self.sample + 1} of {self.samples}" if self.samples > 1 else ""
        return f"{self.what} of {generator.name}{sample}"


def ask_prompts(
    generator: Generator,
    prompts: Sequence[Prompt],
    store: AnswerStore,
    *,
    owners: Sequence[str] | None = None,
    at: Workspace | None = None,
    task: Task | None = None,
) -> list[Answer]:
    """Return the answer to each prompt, in order; equal prompts share one answer.

    `owners` (one query id per prompt) says which prompts share images. A question that another
    process is asking is waited for. Prints the cost estimate before the first call, for `task`
    round and those of further samples; afterwards how many answers came from the store, are new, or
    failed. Raises `VragError` when the estimate or the cost exceeds the model's max_cost, and when
    the model cannot be queried; answers received so far are kept.
    """
    at, task = at or Workspace(), task or Task()
    began = time.monotonic()
    pictures = store.image_info(iter_images(prompts))
    ids = answer_ids(prompts, pictures, generator.fingerprint, generator.decoding, task.sample)
    owned = map(QueryPrompt, owners or [""] * len(ids), prompts)
    asked = dict(zip(ids, owned, strict=True))
    answers = store.read(list(asked))
    failed = store.failures(asked) if at.retry_failures else {}
    retry = {each: when for each, when in failed.items() if not _has_reply(answers[each], task)}
    todo = {each: owned for each, owned in asked.items() if each not in answers or each in retry}
    new = 0
    if todo:
        if task.watch:
            task.watch([(asked[each].prompt, answers[each]) for each in asked if each not in todo])
        asker = _Asker(generator, store, todo, retry, pictures, task)
        new = asker.ask_all(at.batch_size)
        answers |= store.read(list(todo))
    answers = {answer_id: _read(answer, task) for answer_id, answer in answers.items()}
    counts = {"from the store": len(asked) - new, "new": new}
    came = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "none"
    logger.info(f"{task.of(generator)}: {came}; {time.monotonic() - began:.0f} s")
    _report_failures(list(answers.values()), task)
    lost = [
        each.failure for each in answers.values() if each.failure and not _has_reply(each, task)
    ]
    record_calls("model", generator.name, len(answers), lost)
    return [answers[answer_id] for answer_id in ids]


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
        check_budget(generator, self.store, estimate.cost or 0.0)
        generator.prepare()
        size = (generator.max_batch or batch_size) if generator.batched else 1
        batches = list(make_batches(self.todo, size, generator))
        new = 0
        with self.store.renew_leases():
            with progress(None, task.of(generator), len(self.todo), "prompts") as bar:
                counts = _at_once(self._ask, batches, generator.concurrency)
                for batch, count in zip(batches, counts, strict=True):
                    new += count
                    bar.update(len(batch))
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
        Returns how many were asked here.
        """
        new, noted = 0, False
        while missing := self.store.unanswered(list(self.todo), retry=self.retry):
            free = self.store.free(missing, retry=self.retry)
            new += sum(self._ask(free[first : first + size]) for first in range(0, len(free), size))
            if not free and not noted:
                words = f"which is asking {len(missing):,} of these questions"
                logger.info(f"waiting for another notebook or process, {words}")
                noted = True
            if not free:
                time.sleep(_PAUSE)
        return new


def _at_once(
    ask: Callable[[Sequence[str]], int], batches: Sequence[Sequence[str]], threads: int
) -> Iterator[int]:
    """What `ask` returns for each batch, `threads` of them at a time. After an error no further
    batch is begun; those under way are finished.
    """
    if threads == 1:
        yield from map(ask, batches)
        return
    has_failed = Event()

    def ask_next(batch: Sequence[str]) -> int:
        try:
            return 0 if has_failed.is_set() else ask(batch)
        except BaseException:
            has_failed.set()
            raise

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(ask_next, batches)


def _read(answer: Answer, task: Task) -> Answer:
    """Return a stored answer with the fields that the task's parser finds in its text."""
    if not _has_reply(answer, task):
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


def _has_reply(answer: Answer, task: Task) -> bool:
    """Whether the model replied, even badly; a failed call is no reply."""
    return answer.failure is None or (task.silence_counts and answer.status.is_answer)


def _report_failures(answers: Sequence[Answer], task: Task) -> None:
    """Print how many answers failed, by kind with an example, and how many lack "Answer:"."""
    failures = [answer.failure for answer in answers if answer.failure]
    for kind in dict.fromkeys(each.kind for each in failures):
        alike = [each for each in failures if each.kind == kind]
        effect = ", counted as wrong" if task.silence_counts and kind.is_answer else ""
        logger.info(f"  {len(alike):,} failed, such as {alike[0]}{effect}")
    usable = [answer for answer in answers if answer.failure is None]
    if untagged := sum(bool(answer.fields.get("untagged")) for answer in usable):
        logger.info(f"  {untagged:,} answers without 'Answer:', judged as a whole")
