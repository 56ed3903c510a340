"""A language model as judge, by a rubric: question, references and answer, no images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

import pandas as pd

from vrag_kit.errors import SetupError, VragError, short_repr
from vrag_kit.generation.ask import Task, Watch, ask_prompts
from vrag_kit.generation.generators import Generator
from vrag_kit.generation.store import AnswerStore
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict
from vrag_kit.judging.scale import no_reference_failure, query_answers
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
from vrag_kit.workspace import Workspace

T = TypeVar("T")
_ENOUGH = 20
"""Replies that show whether a model keeps the format …"""
_NEARLY_ALL = 0.9
"""… and the share of unparsed ones from which it does not."""
_UNPARSED = (Status.UNREADABLE, Status.EMPTY, Status.TRUNCATED, Status.REFUSED)
"""Failures of a model that replied."""


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
    failure: Failure | None = None
    """Why nothing could be parsed; None on success, or in a dry run."""

    @property
    def foreseen(self) -> bool:
        """Whether this is the placeholder of a dry run."""
        return self.value is None and self.failure is None

    @property
    def replied(self) -> bool:
        """Whether the model replied."""
        return self.value is not None or self.unparsed

    @property
    def unparsed(self) -> bool:
        """Whether the model replied, but not in the required format."""
        return self.failure is not None and self.failure.kind in _UNPARSED


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredAsker:
    """Queries a model for replies in a format, stores them, and retries unparsed ones once."""

    generator: Generator
    at: Workspace
    """Its answer store keeps the raw replies, which are parsed at each use. No reply is requested
    twice.
    """
    what: str
    """What is requested, in messages: "verdicts"."""
    repair: Callable[[str], str]
    """Builds the message that follows an unparsed reply, from the reason."""
    _earlier: Counter[bool] = field(default_factory=Counter, init=False, repr=False)
    """How many replies to earlier calls of `ask` were parsed in the end, and how many not."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a model that cannot be called, as without its key, unless replies
        of it are stored.
        """
        if not (missing := self.generator.missing()):
            return
        message = f"model {self.generator.name!r} cannot be asked for {self.what}: {missing}"
        stored = False
        if self.at.answers_file.is_file():
            with self._store() as store:
                stored = store.has_model(self.generator.name)
        if not stored:
            raise VragError(f"{message}.")
        logger.info(f"note: {message}; unless all are stored, the run will stop there")

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
        by_prompt = {id(each.prompt): each for each in asked}
        counts = Counter(self._earlier)
        lock = Lock()

        def watch(replies: Sequence[tuple[Prompt, Answer]]) -> None:
            parsed = [_parse(by_prompt[id(prompt)], reply) for prompt, reply in replies]
            with lock:  # several calls are under way
                counts.update(_formats(parsed))
                self._require_format(counts, parsed)

        found = self._replies(asked, self.what, sample, samples, watch)
        again = [place for place, reply in enumerate(found) if reply.raw and reply.failure]
        if again:
            self._require_format(self._earlier + _formats(found), found)
            repairs = [self._repair(asked[place], found[place]) for place in again]
            repaired = self._replies(repairs, f"repaired {self.what}", sample, 1)
            for place, reply in zip(again, repaired, strict=True):
                found[place] = reply
            lost = sum(reply.failure is not None for reply in repaired)
            logger.info(
                f"{self.what} of {self.generator.name}: {len(again):,} could not be read and were"
                f" asked for once more, {lost:,} of them remain unreadable",
            )
        self._earlier.update(_formats(found))
        return found

    def _require_format(self, counts: Counter[bool], replies: Sequence[ParsedReply[T]]) -> None:
        """Raise `SetupError` if nearly all of enough replies are unparsed."""
        total, unparsed = counts.total(), counts[False]
        if total < _ENOUGH or unparsed < _NEARLY_ALL * total:
            return
        example = next((each for each in replies if each.unparsed), replies[-1])
        raise SetupError(
            f"{self.what} of {self.generator.name!r}: {unparsed:,} of {total:,} replies cannot be"
            f" read, such as {short_repr(example.raw or '')} ({example.failure}). Replies are kept."
            " Take a stronger model, or another rubric; where replies are cut off, raise"
            " `max_new_tokens`; another `name` in its entry asks again."
        )

    def _replies(
        self,
        asked: Sequence[Request[T]],
        what: str,
        sample: int,
        samples: int,
        watch: Watch | None = None,
    ) -> list[ParsedReply[T]]:
        task = Task(what=what, read=lambda raw: {}, sample=sample, samples=samples, watch=watch)
        prompts, owners = [each.prompt for each in asked], [each.owner for each in asked]
        with self._store() as store:
            replies = ask_prompts(
                self.generator, prompts, store, owners=owners, at=self.at, task=task
            )
        return [_parse(each, reply) for each, reply in zip(asked, replies, strict=True)]

    def _store(self) -> AnswerStore:
        return AnswerStore(self.at.answers_file)

    def _repair(self, asked: Request[T], reply: ParsedReply[T]) -> Request[T]:
        """The prompt, what the model replied, and what is wrong with that."""
        failure = reply.failure
        unreadable = failure is not None and failure.kind == Status.UNREADABLE
        reason = failure.words if failure and unreadable else str(failure)
        first = Message(role="assistant", parts=(reply.raw or "",))
        again = Message(role="user", parts=(self.repair(reason),))
        return Request(prompt=(*asked.prompt, first, again), read=asked.read, owner=asked.owner)


def _formats(replies: Sequence[ParsedReply[T]]) -> Counter[bool]:
    """How many replies could be parsed, and how many not."""
    return Counter(not each.unparsed for each in replies if each.replied)


def _parse(asked: Request[T], reply: Answer) -> ParsedReply[T]:
    if reply.is_placeholder:
        return ParsedReply(value=None, raw=reply.raw)
    if reply.failure is not None:
        return ParsedReply(value=None, raw=reply.raw, failure=reply.failure)
    try:
        return ParsedReply(value=asked.read(reply.raw or ""), raw=reply.raw)
    except UnparsedError as error:
        failure = Failure(Status.UNREADABLE, str(error))
        return ParsedReply(value=None, raw=reply.raw, failure=failure)


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
        at: Workspace,
        *,
        samples: int = 1,
        name: str = "",
    ) -> None:
        """Verdicts are stored in the workspace's answer store, `samples` per answer. `name` is
        the model's unless given.

        Raises `VragError` for several samples of a model that decodes greedily.
        """
        if samples > 1 and generator.deterministic:
            raise VragError(
                f"judge {generator.name!r}: {samples} samples are asked for, but it decodes"
                " greedily, so that they would be copies. Set judge_samples to 1, or another"
                " `decoding` in the judge's entry."
            )
        self.name, self.scale = name or generator.name, rubric.scale
        self.samples = samples
        decoding = sorted(generator.decoding.items())
        self.fingerprint = repr((generator.fingerprint, decoding, rubric.fingerprint))
        self.prompt_text = rubric.text
        self._rubric = rubric
        self._asker = StructuredAsker(
            generator=generator,
            at=at,
            what="verdicts",
            repair=rubric.build_repair,
        )

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return the verdicts of each row of answers, one per sample.
        An answer that needs no judge gets one; a query without accepted answers gets a failure.
        """
        pairs = query_answers(benchmark, answers)
        known = [self._without_model(query, answer) for query, answer in pairs]
        asked = [
            Request(prompt=self._rubric.build_prompt(*pair), read=self._rubric.parse_verdict)
            for pair, verdict in zip(pairs, known, strict=True)
            if verdict is None
        ]
        rounds = [
            self._asker.ask(asked, sample=sample, samples=self.samples)
            for sample in range(self.samples)
        ]
        replies = zip(*rounds, strict=True)
        return [
            (verdict,) if verdict else tuple(map(self._judgment, next(replies)))
            for verdict in known
        ]

    def _without_model(self, query: Query, answer: str) -> Judgment | None:
        """The verdict that needs no model; None where it is to be queried."""
        if not query.answers:
            return no_reference_failure(query)
        verdict = self._rubric.precheck(query, answer)
        if verdict is None:
            return None
        return self._judgment(ParsedReply(value=verdict, raw="no judge was asked"))

    def _judgment(self, reply: ParsedReply[Verdict]) -> Judgment:
        """The verdict in a reply, or why there is none. In a dry run the worst, marked."""
        if reply.failure is not None:
            return Judgment(score=None, raw=reply.raw, failure=reply.failure)
        verdict = reply.value or Verdict(self.scale.worst, frozenset({PLACEHOLDER}))
        return Judgment(score=verdict.score, marks=verdict.marks, raw=reply.raw)
