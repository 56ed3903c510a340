"""A language model as judge, by a rubric: question, references and answer, no images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from vrag_kit.errors import SetupError, VragError, short_repr
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict, verdict_label
from vrag_kit.judging.scale import no_reference_failure
from vrag_kit.log import logger
from vrag_kit.types import (
    PLACEHOLDER,
    Answer,
    Benchmark,
    Failure,
    Judgment,
    Message,
    Prompt,
    Query,
    Status,
)

if TYPE_CHECKING:
    from vrag_kit.config import Hardware
    from vrag_kit.generation.ask import Watch
    from vrag_kit.generation.generators import Generator

T = TypeVar("T")
_ENOUGH = 20
"""Replies that show whether a model keeps the form."""
_NEARLY_ALL = 0.9
"""The share of unreadable replies from which it does not."""
_NO_REPLY = (Status.TIMEOUT, Status.RATE_LIMITED, Status.ERROR, Status.TOO_LONG, Status.DAMAGED)
"""Failures that say nothing about a model's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    """A prompt, and the parser of its reply."""

    prompt: Prompt
    read: Callable[[str], T]
    """Parses a reply; raises `UnparsedError` with the reason."""
    owner: str = ""
    """The query; prompts of one query share images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply(Generic[T]):
    """A model's reply, parsed."""

    value: T | None
    """None after a failure, and in a dry run, in which no model is called."""
    raw: str | None
    """The model's reply, unchanged; None when the call failed."""
    failure: Failure | None
    """Why nothing could be parsed; None on success, or in a dry run."""

    @property
    def foreseen(self) -> bool:
        """Whether this is the placeholder of a dry run."""
        return self.value is None and self.failure is None

    @property
    def unreadable(self) -> bool:
        """Whether the model replied, but not in the required format."""
        return self.failure is not None and self.failure.kind not in _NO_REPLY


@dataclass(slots=True)
class _Form(Generic[T]):
    """Whether replies keep the form."""

    counts: Counter[bool] = field(default_factory=Counter)
    """How many do, and how many do not."""
    example: str = ""
    """One that does not, in words."""
    unreadable: list[tuple[Request[T], ParsedReply[T]]] = field(default_factory=list)

    def note(self, asked: Request[T], reading: ParsedReply[T]) -> None:
        """Count a reply; a failed call, or a placeholder of a dry run, is none."""
        if reading.unreadable:
            self.example = f"{short_repr(reading.raw or '')} ({reading.failure})"
            self.unreadable.append((asked, reading))
        if reading.unreadable or reading.value is not None:
            self.counts[not reading.unreadable] += 1

    @property
    def is_lost(self) -> bool:
        """Whether nearly all of enough replies are unreadable."""
        total = self.counts.total()
        return total >= _ENOUGH and self.counts[False] >= _NEARLY_ALL * total


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredAsker:
    """Queries a model for replies in a format, stores them, and retries unparsed ones."""

    generator: Generator
    answers_dir: Path
    """Its `answers.sqlite` stores the raw replies, which are parsed at each use.
    No reply is requested twice.
    """
    hardware: Hardware
    what: str
    """What is requested, in messages: "verdicts"."""
    repair: Callable[[str], str]
    """Builds the message that follows an unparsed reply, from the reason."""
    _before: _Form[Any] = field(default_factory=_Form, init=False, repr=False)
    """What replies to earlier calls of `ask` came to in the end."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a model that cannot be asked, as without its key, before
        others are asked for what it is to read; where words of it are stored, only say so.
        """
        missing = self.generator.missing()
        if not missing:
            return
        told = f"model {self.generator.name!r} cannot be asked for {self.what}: {missing}"
        if not self._has_words():
            raise VragError(f"{told}.")
        logger.info(f"note: {told}; unless all are stored, the run will stop there")

    def _has_words(self) -> bool:
        """Whether any words of the model are stored."""
        from vrag_kit.generation.store import AnswerStore

        path = self.answers_dir / "answers.sqlite"
        if not path.is_file():
            return False
        with AnswerStore(path) as store:
            return store.has_model(self.generator.name)

    def ask(
        self, asked: Sequence[Request[T]], *, sample: int = 0, samples: int = 1
    ) -> list[ParsedReply[T]]:
        """Return the parsed reply to each request, in order; a truncated reply is a failure.
        Prints how many had to be requested again.

        Raises `VragError` before the next call, or before the retries, when nearly all of at least
        20 replies are unparsed; they stay stored.
        """
        if not asked:
            return []
        readings = self._first(asked, sample, samples)
        again = [place for place, reading in enumerate(readings) if _can_repair(reading)]
        if again:
            self._check(self._form_of(asked, readings), sample, asks_on=False)
            repairs = [self._repair(asked[place], readings[place]) for place in again]
            repaired = self._replies(repairs, f"repaired {self.what}", sample, 1)
            for place, reply in zip(again, repaired, strict=True):
                readings[place] = _read(asked[place], reply)
            lost = sum(readings[place].failure is not None for place in again)
            logger.info(
                f"{self.what} of {self.generator.name}: {len(again):,} could not be read and were"
                f" asked for once more, {lost:,} of them remain unreadable",
            )
        known = self._form_of(asked, readings)
        self._before.counts, self._before.example = known.counts, known.example
        return readings

    def _form_of(self, asked: Sequence[Request[T]], readings: Sequence[ParsedReply[T]]) -> _Form[T]:
        """The form of these and of all before."""
        form: _Form[T] = _Form(Counter(self._before.counts), self._before.example)
        for each, reading in zip(asked, readings, strict=True):
            form.note(each, reading)
        return form

    def _first(
        self, asked: Sequence[Request[T]], sample: int, samples: int
    ) -> list[ParsedReply[T]]:
        """What each first reply says; in a dry run it is noted that they may be asked again."""
        from vrag_kit.generation.generators import DryRunGenerator

        form: _Form[T] = self._form_of((), ())
        by_prompt = {id(each.prompt): each for each in asked}
        lock = Lock()

        def watch(replies: Sequence[tuple[Prompt, Answer]]) -> None:
            with lock:  # several calls are under way
                for prompt, reply in replies:
                    each = by_prompt[id(prompt)]
                    form.note(each, _read(each, reply))
                self._check(form, sample, asks_on=True)

        before = len(self.generator.prompts) if isinstance(self.generator, DryRunGenerator) else 0
        replies = self._replies(asked, self.what, sample, samples, watch)
        if isinstance(self.generator, DryRunGenerator):
            self.generator.may_repair += len(self.generator.prompts) - before
        return [_read(each, reply) for each, reply in zip(asked, replies, strict=True)]

    def _check(self, form: _Form[T], sample: int, *, asks_on: bool) -> None:
        """Raise `VragError` where replies do not keep the form, unless they did when asked
        again; without `asks_on` only where one was not asked again yet.
        """
        from vrag_kit.generation.ask import stored_answers
        from vrag_kit.generation.store import AnswerStore

        if not form.is_lost:
            return
        repairs = [self._repair(*each) for each in form.unreadable if _can_repair(each[1])]
        with AnswerStore(self.answers_dir / "answers.sqlite") as store:
            prompts = [repair.prompt for repair in repairs]
            stored = stored_answers(self.generator, prompts, store, sample)
        known = [(each, reply) for each, reply in zip(repairs, stored, strict=True) if reply]
        mended = sum(_read(each, reply).value is not None for each, reply in known)
        form.counts.update({True: mended, False: -mended})
        form.unreadable.clear()
        if form.is_lost and (asks_on or len(known) < len(repairs)):
            raise SetupError(
                f"{self.what} of {self.generator.name!r}: {form.counts[False]:,} of"
                f" {form.counts.total():,} replies cannot be read, such as {form.example}. Stopped"
                " before it is asked further, or again; replies are kept. Take a stronger model,"
                " another rubric, or, where replies are cut off, a larger `max_new_tokens` in its"
                " entry. If its server was mended, another `name` in its entry asks anew."
            )

    def _replies(
        self,
        asked: Sequence[Request[T]],
        what: str,
        sample: int,
        samples: int,
        watch: Watch | None = None,
    ) -> list[Answer]:
        from vrag_kit.generation.ask import Task, ask_prompts
        from vrag_kit.generation.store import AnswerStore

        task = Task(what=what, read=lambda raw: {}, sample=sample, samples=samples, watch=watch)
        prompts, owners = [each.prompt for each in asked], [each.owner for each in asked]
        with AnswerStore(self.answers_dir / "answers.sqlite") as store:
            return ask_prompts(
                self.generator, prompts, store, owners=owners, hardware=self.hardware, task=task
            )

    def _repair(self, asked: Request[T], reading: ParsedReply[T]) -> Request[T]:
        """The prompt, what the model said to it, and what is wrong with that."""
        failure = reading.failure
        unreadable = failure is not None and failure.kind == Status.UNREADABLE
        reason = failure.words if failure and unreadable else str(failure)
        said = Message(role="assistant", parts=(reading.raw or "",))
        again = Message(role="user", parts=(self.repair(reason),))
        prompt = (*asked.prompt, said, again)
        return Request(prompt=prompt, read=asked.read, owner=asked.owner)


def _read(asked: Request[T], reply: Answer) -> ParsedReply[T]:
    if reply.is_placeholder:
        return ParsedReply(value=None, raw=reply.raw, failure=None)
    if reply.failure is not None:
        return ParsedReply(value=None, raw=reply.raw, failure=reply.failure)
    try:
        return ParsedReply(value=asked.read(reply.raw or ""), raw=reply.raw, failure=None)
    except UnparsedError as error:
        failure = Failure(Status.UNREADABLE, str(error))
        return ParsedReply(value=None, raw=reply.raw, failure=failure)


def _can_repair(reading: ParsedReply[T]) -> bool:
    """Whether there are words, but nothing could be read in them."""
    return bool(reading.raw) and reading.failure is not None


if TYPE_CHECKING:
    from vrag_kit.config import Hardware
    from vrag_kit.generation.generators import Generator


class LLMJudge:
    """Scores answers with a language model and a rubric; implements `Judge`.

    `StructuredAsker` sends the prompts: stored replies are reused, unparsed ones requested once
    more. With several `samples` each answer is judged that many times: the spread is the judge's
    own noise.
    """

    def __init__(
        self,
        generator: Generator,
        rubric: Rubric,
        answers_dir: Path | str,
        *,
        hardware: Hardware,
        samples: int = 1,
    ) -> None:
        """Verdicts are stored in `answers.sqlite` in `answers_dir`, `samples` per answer.

        Raises `VragError` for several samples of a model that decodes greedily.
        """
        if samples < 1:
            raise VragError(f"judge_samples is {samples}; expected 1 or more.")
        if samples > 1 and generator.deterministic:
            raise VragError(
                f"judge {generator.name!r}: {samples} samples are asked for, but it decodes"
                " greedily, so that they would be copies. Set judge_samples to 1, or another"
                " `decoding` in the judge's entry."
            )
        self.name, self.scale = generator.name, rubric.scale
        self.samples = samples
        decoding = sorted(generator.decoding.items())
        self.fingerprint = repr((generator.fingerprint, decoding, rubric.fingerprint))
        self.words = rubric.words
        self._rubric = rubric
        self._asker = StructuredAsker(
            generator=generator,
            answers_dir=Path(answers_dir),
            hardware=hardware,
            what="verdicts",
            repair=rubric.build_repair,
        )

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return the verdicts of each row of answers, one per sample.
        An answer that needs no judge gets one; a query without accepted answers gets a failure.
        """
        rows = zip(answers["query_id"], answers["answer"], strict=True)
        pairs = [(benchmark.queries[query_id], answer) for query_id, answer in rows]
        known = [self._without_asking(query, answer) for query, answer in pairs]
        asked = [pair for pair, verdict in zip(pairs, known, strict=True) if verdict is None]
        prompts = [self._rubric.build_prompt(query, answer) for query, answer in asked]
        rounds = [self._round(prompts, sample) for sample in range(self.samples)] if prompts else []
        verdicts = iter(zip(*rounds, strict=True))
        return [next(verdicts) if verdict is None else (verdict,) for verdict in known]

    def _without_asking(self, query: Query, answer: str) -> Judgment | None:
        """The verdict that needs no model; None where it is to be asked."""
        if not query.answers:
            return no_reference_failure(query)
        verdict = self._rubric.run_precheck(query, answer)
        return None if verdict is None else self._judgment(verdict, "no judge was asked")

    def _round(self, prompts: Sequence[Prompt], sample: int) -> list[Judgment]:
        """One verdict a prompt."""
        asked = [Request(prompt=prompt, read=self._rubric.parse_verdict) for prompt in prompts]
        readings = self._asker.ask(asked, sample=sample, samples=self.samples)
        return [self._verdict(reading) for reading in readings]

    def _verdict(self, reading: ParsedReply[Verdict]) -> Judgment:
        """The verdict in a reply, or why there is none. In a dry run the worst, marked."""
        if reading.value is not None:
            return self._judgment(reading.value, reading.raw)
        if reading.failure is not None:
            return Judgment(
                answer_id="", label="", score=None, raw=reading.raw, failure=reading.failure
            )
        return Judgment(
            answer_id="",
            label="incorrect",
            score=self.scale.worst,
            marks=frozenset({PLACEHOLDER}),
            raw=reading.raw,
        )

    def _judgment(self, verdict: Verdict, raw: str | None) -> Judgment:
        label = verdict_label(verdict, self.scale)
        return Judgment(
            answer_id="", label=label, score=verdict.score, marks=verdict.marks, raw=raw
        )
