"""Asking a model whose words must have a form: what cannot be read is asked for once
more, with the reason; then it is unreadable. A model that does not keep the form is asked
nothing further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vrag_kit.errors import CertainError, VragError, short
from vrag_kit.forecast import STAND_IN, current_forecast
from vrag_kit.judging.rubric import Unreadable
from vrag_kit.types import Answer, Failure, Message, Prompt, Status

if TYPE_CHECKING:
    from vrag_kit.generation.asking_options import Asking, Watch
    from vrag_kit.generation.generator import Generator

T = TypeVar("T")
_ENOUGH = 20
"""Replies that show whether a model keeps the form."""
_NEARLY_ALL = 0.9
"""The share of unreadable replies from which it does not."""
_NO_REPLY = (Status.TIMEOUT, Status.RATE_LIMITED, Status.ERROR, Status.TOO_LONG, Status.DAMAGED)
"""Failures that say nothing about a model's words."""


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

    @property
    def unreadable(self) -> bool:
        """Whether the model replied, but not in the form."""
        return self.failure is not None and self.failure.kind not in _NO_REPLY


@dataclass(slots=True)
class _Form(Generic[T]):
    """Whether replies keep the form."""

    counts: Counter[bool] = field(default_factory=Counter)
    """How many do, and how many do not."""
    example: str = ""
    """One that does not, in words."""
    unreadable: list[tuple[Asked[T], Reading[T]]] = field(default_factory=list)

    def note(self, asked: Asked[T], reading: Reading[T]) -> None:
        """Count a reply; a failed call, or a stand-in of a forecast, is none."""
        if reading.unreadable:
            self.example = f"{short(reading.raw or '')} ({reading.failure})"
            self.unreadable.append((asked, reading))
        if reading.unreadable or reading.value is not None:
            self.counts[not reading.unreadable] += 1

    @property
    def is_lost(self) -> bool:
        """Whether nearly all of enough replies are unreadable."""
        total = self.counts.total()
        return total >= _ENOUGH and self.counts[False] >= _NEARLY_ALL * total


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
    _before: _Form[Any] = field(default_factory=_Form, init=False, repr=False)
    """What replies to earlier calls of `ask` came to in the end."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a model that cannot be asked, as without its key, before
        others are asked for what it is to read; where words of it are stored, only say so.
        """
        missing = self.generator.missing() if current_forecast() is None else ""
        if not missing:
            return
        told = f"model {self.generator.name!r} cannot be asked for {self.what}: {missing}"
        if not self._has_words():
            raise VragError(f"{told}.")
        print(f"note: {told}; unless all are stored, the run will stop there", flush=True)

    def _has_words(self) -> bool:
        """Whether any words of the model are stored."""
        from vrag_kit.generation.answers import AnswerStore

        path = self.answers_dir / "answers.sqlite"
        if not path.is_file():
            return False
        with AnswerStore(path) as store:
            return store.knows(self.generator.name)

    def ask(
        self, asked: Sequence[Asked[T]], *, sample: int = 0, samples: int = 1
    ) -> list[Reading[T]]:
        """What each reply says, in order; cut-off words say nothing. Prints how many had
        to be asked for again.

        Raises `VragError` before the next call, or before any is asked again, when nearly
        all of at least 20 replies are unreadable; they are kept.
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
            print(
                f"{self.what} of {self.generator.name}: {len(again):,} could not be read and were"
                f" asked for once more, {lost:,} of them remain unreadable",
                flush=True,
            )
        known = self._form_of(asked, readings)
        self._before.counts, self._before.example = known.counts, known.example
        return readings

    def _form_of(self, asked: Sequence[Asked[T]], readings: Sequence[Reading[T]]) -> _Form[T]:
        """The form of these and of all before."""
        form: _Form[T] = _Form(Counter(self._before.counts), self._before.example)
        for each, reading in zip(asked, readings, strict=True):
            form.note(each, reading)
        return form

    def _first(self, asked: Sequence[Asked[T]], sample: int, samples: int) -> list[Reading[T]]:
        """What each first reply says; in a forecast it is noted that they may be asked again."""
        from vrag_kit.generation.stand_in import StandIn

        form: _Form[T] = self._form_of((), ())
        by_prompt = {id(each.prompt): each for each in asked}
        lock = Lock()

        def watch(replies: Sequence[tuple[Prompt, Answer]]) -> None:
            with lock:  # several calls are under way
                for prompt, reply in replies:
                    each = by_prompt[id(prompt)]
                    form.note(each, _read(each, reply))
                self._check(form, sample, asks_on=True)

        before = len(self.generator.prompts) if isinstance(self.generator, StandIn) else 0
        replies = self._replies(asked, self.what, sample, samples, watch)
        if isinstance(self.generator, StandIn):
            self.generator.may_repair += len(self.generator.prompts) - before
        return [_read(each, reply) for each, reply in zip(asked, replies, strict=True)]

    def _check(self, form: _Form[T], sample: int, *, asks_on: bool) -> None:
        """Raise `VragError` where replies do not keep the form, unless they did when asked
        again; without `asks_on` only where one was not asked again yet.
        """
        from vrag_kit.generation.answers import AnswerStore
        from vrag_kit.generation.asking import stored_answers

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
            raise CertainError(
                f"{self.what} of {self.generator.name!r}: {form.counts[False]:,} of"
                f" {form.counts.total():,} replies cannot be read, such as {form.example}. Stopped"
                " before it is asked further, or again; replies are kept. Take a stronger model,"
                " another rubric, or, where replies are cut off, a larger `max_new_tokens` in its"
                " entry. If its server was mended, another `name` in its entry asks anew."
            )

    def _replies(
        self,
        asked: Sequence[Asked[T]],
        what: str,
        sample: int,
        samples: int,
        watch: Watch | None = None,
    ) -> list[Answer]:
        from vrag_kit.generation.answers import AnswerStore
        from vrag_kit.generation.asking import ask_prompts
        from vrag_kit.generation.asking_options import Round

        this = Round(what=what, read=lambda raw: {}, sample=sample, samples=samples, watch=watch)
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
