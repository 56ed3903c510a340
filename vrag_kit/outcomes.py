"""How a question to a model or a judge ended, and why there is no answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a question to a model, or to a judge, ended."""

    OK = "ok"
    """There is something to work with."""
    EMPTY = "empty"
    """The model ended without a word, or with none where its answer should stand: a bad
    answer, but the model's own.
    """
    TRUNCATED = "truncated"
    """The answer was cut off at its longest length, and is as bad; the words so far are
    kept.
    """
    REFUSED = "refused"
    """The model's provider would not answer."""
    TOO_LONG = "too_long"
    """The model cannot hold the prompt."""
    TIMEOUT = "timeout"
    """No whole answer came in time."""
    RATE_LIMITED = "rate_limited"
    """The endpoint took no more calls."""
    ERROR = "error"
    """Anything else that went wrong with the call."""
    UNREADABLE = "unreadable"
    """There are words, but not in the form that was asked for."""
    DAMAGED = "damaged"
    """A picture could not be opened, so that nothing was asked."""
    EARLIER_TURN = "earlier_turn"
    """An earlier turn of the conversation failed, so that nothing was asked."""
    STOPPED = "stopped"
    """The conversation was over before this turn, by its protocol's rule, so that
    nothing was asked: no failure.
    """

    @property
    def is_answer(self) -> bool:
        """Whether the model answered, be it with no word or with too many."""
        return self in (Status.OK, Status.EMPTY, Status.TRUNCATED)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no usable answer or verdict."""

    kind: Status
    """What sort of failure it is; never `Status.OK`."""
    words: str = ""
    """The reason for people; nothing reads it again."""

    def __str__(self) -> str:
        kind = self.kind.replace("_", " ")
        return f"{kind}: {self.words}" if self.words else kind
