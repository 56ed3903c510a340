"""Asking a model whose words must have a form: what cannot be read is asked for once
more, with the reason; then it is unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from vrag_kit.forecast import STAND_IN
from vrag_kit.judging.rubric import Unreadable
from vrag_kit.types import Answer, Failure, Message, Prompt, Status

if TYPE_CHECKING:
    from vrag_kit.generation.asking_options import Asking
    from vrag_kit.generation.generator import Generator

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[T]):
    """A prompt, and how the reply to it is read."""

    prompt: Prompt
    read: Callable[[str], T]
    """What a reply says; raises `Unreadable` with the reason."""
    owner: str = ""
    """The query; prompts of one share pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """What a model's words say."""

    value: T | None
    """None with a failure, and in a forecast, where nobody is asked."""
    raw: str | None
    """The model's words, unchanged; None when the call failed."""
    failure: Failure | None
    """Why nothing could be read; None where something was, or in a forecast."""

    @property
    def foreseen(self) -> bool:
        """Whether this stands in a forecast for what would be read."""
        return self.value is None and self.failure is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictAsker:
    """A model, the store that keeps its words, and how it is asked for them again."""

    generator: Generator
    answers_dir: Path
    """Words are kept in its `answers.sqlite` as they are and read anew each time, so
    that nothing is asked twice.
    """
    how: Asking
    what: str
    """What is asked for, in messages: "verdicts"."""
    repair: Callable[[str], str]
    """What is asked once more when a reply cannot be read, for that reason."""

    def __post_init__(self) -> None:
        from vrag_kit.generation.awaited import await_words

        await_words(self.generator, self.what, self.answers_dir / "answers.sqlite")

    def ask(
        self, asked: Sequence[Asked[T]], *, sample: int = 0, samples: int = 1
    ) -> list[Reading[T]]:
        """What each reply says, in order; cut-off words say nothing. Prints how many had
        to be asked for again.
        """
        if not asked:
            return []
        replies = self._replies(asked, self.what, sample, samples)
        pairs = list(zip(asked, replies, strict=True))
        readings = [_read(each, reply) for each, reply in pairs]
        again = [place for place, reading in enumerate(readings) if _can_repair(reading)]
        if not again:
            return readings
        repairs = [self._repair(asked[place], readings[place]) for place in again]
        repaired = self._replies(repairs, f"repaired {self.what}", sample, 1)
        for place, reply in zip(again, repaired, strict=True):
            readings[place] = _read(asked[place], reply)
        lost = sum(readings[place].failure is not None for place in again)
        print(
            f"{self.what} of {self.generator.name}: {len(again):,} could not be read and were asked"
            f" for once more, {lost:,} of them remain unreadable",
            flush=True,
        )
        return readings

    def _replies(
        self, asked: Sequence[Asked[T]], what: str, sample: int, samples: int
    ) -> list[Answer]:
        from vrag_kit.generation.answers import AnswerStore
        from vrag_kit.generation.asking import ask_prompts
        from vrag_kit.generation.asking_options import Round

        this = Round(what=what, read=lambda raw: {}, sample=sample, samples=samples)
        prompts, owners = [each.prompt for each in asked], [each.owner for each in asked]
        with AnswerStore(self.answers_dir / "answers.sqlite") as store:
            return ask_prompts(
                self.generator, prompts, store, owners=owners, how=self.how, this=this
            )

    def _repair(self, asked: Asked[T], reading: Reading[T]) -> Asked[T]:
        """The prompt, what the model said to it, and what is wrong with that."""
        failure = reading.failure
        unreadable = failure is not None and failure.kind == Status.UNREADABLE
        reason = failure.words if failure and unreadable else str(failure)
        said = Message(role="assistant", parts=(reading.raw or "",))
        again = Message(role="user", parts=(self.repair(reason),))
        prompt = (*asked.prompt, said, again)
        return Asked(prompt=prompt, read=asked.read, owner=asked.owner)


def _read(asked: Asked[T], reply: Answer) -> Reading[T]:
    if reply.fields.get(STAND_IN):
        return Reading(value=None, raw=reply.raw, failure=None)
    if reply.failure is not None:
        return Reading(value=None, raw=reply.raw, failure=reply.failure)
    try:
        return Reading(value=asked.read(reply.raw or ""), raw=reply.raw, failure=None)
    except Unreadable as error:
        failure = Failure(Status.UNREADABLE, str(error))
        return Reading(value=None, raw=reply.raw, failure=failure)


def _can_repair(reading: Reading[T]) -> bool:
    """Whether there are words, but nothing could be read in them."""
    return bool(reading.raw) and reading.failure is not None
