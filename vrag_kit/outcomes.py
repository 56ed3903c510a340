"""Statuses of calls to models and judges, and reasons for failure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a call to a model or a judge ended."""

    OK = "ok"
    """The answer or verdict is usable."""
    EMPTY = "empty"
    """The model returned no text, or none where its answer is expected. This is a bad answer, but
    the model's own.
    """
    TRUNCATED = "truncated"
    """The answer was cut off at its maximum length; the text so far is kept. It counts as a bad
    answer, like `EMPTY`.
    """
    REFUSED = "refused"
    """The model's provider refused to answer."""
    TOO_LONG = "too_long"
    """The prompt does not fit into the model's context."""
    TIMEOUT = "timeout"
    """No complete answer arrived in time."""
    RATE_LIMITED = "rate_limited"
    """The endpoint accepted no more calls."""
    ERROR = "error"
    """Any other error of the call."""
    UNREADABLE = "unreadable"
    """The text is not in the requested format."""
    DAMAGED = "damaged"
    """An image could not be opened; the model was not called."""
    EARLIER_TURN = "skipped"
    """An earlier turn of the conversation failed; the model was not called."""
    STOPPED = "early_stopped"
    """The protocol ended the conversation before this turn (early stopping). The model was not
    called, and this is no failure.
    """

    @property
    def is_answer(self) -> bool:
        """Whether the model answered, including empty and truncated answers."""
        return self in (Status.OK, Status.EMPTY, Status.TRUNCATED)

    @property
    def is_transient(self) -> bool:
        """Whether a retry, or another server, may resolve the failure."""
        return self in (Status.TIMEOUT, Status.RATE_LIMITED, Status.ERROR)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no usable answer or verdict."""

    kind: Status
    """The kind of failure; never `Status.OK`."""
    words: str = ""
    """The reason as text for users; it is never parsed."""

    def __str__(self) -> str:
        kind = self.kind.replace("_", " ")
        return f"{kind}: {self.words}" if self.words else kind
