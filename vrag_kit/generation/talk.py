"""How conversations are held: what a turn is told of earlier ones, what is searched for
it, when a conversation is over, and how much of an answer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.conversations import HISTORIES, History
from vrag_kit.generation.cutting import Cut
from vrag_kit.generation.reading import Fields
from vrag_kit.generation.wording import Wording
from vrag_kit.types import Benchmark, Context, Evidence, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found for one turn."""

    documents: tuple[Evidence, ...] = ()
    """What the turn may be shown, in order."""
    searched: str = ""
    """The words that were searched with; "" where no words were."""
    rewriting: str = ""
    """What became of the question before the search; "" where nobody was to rewrite it."""
    passed_over: int = 0
    """Documents that were found and have nothing to show; they are not among the others."""
    failure: Failure | None = None
    """Why nothing could be searched, as when a model that was to rewrite the question
    did not answer; the turn then fails for that reason.
    """


class Search(Protocol):
    """Finds the documents of turns, when it is their turn."""

    def find(
        self, benchmark: Benchmark, contexts: Sequence[Context], histories: Sequence[History]
    ) -> Sequence[Found]:
        """What was found for each context after its history, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """When a conversation is over before its last turn."""

    score: Callable[[pd.DataFrame], Sequence[float]]
    """Rows of a table of answers, of one turn → the score of each; NaN where none is
    known.
    """
    rule: Callable[[Sequence[float]], int | None]
    """The scores of a conversation's turns so far, in order → the turn (from 0) at which
    it is over; None while it goes on.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How conversations are held; a question alone is one of a single turn."""

    wording: Wording
    """How turns are worded, and their answers read."""
    history: str = "own"
    """What is told of earlier turns: "own", the model's own answers; "reference", the
    accepted ones; "none", nothing.
    """
    search: Search | None = None
    """What is searched before a turn is asked; None where the contexts have their
    documents already.
    """
    stop: EarlyStop | None = None
    """Ends conversations early, so that their later turns are not asked; None asks all.
    """
    cut: Cut | None = None
    """How much of an answer counts; None for all of it."""

    def __post_init__(self) -> None:
        """Raise `VragError` for an unknown history."""
        if self.history not in HISTORIES:
            raise VragError(f"history is {self.history!r}; expected one of {', '.join(HISTORIES)}.")

    def read(self, raw: str) -> Fields:
        """The fields of an answer; "enough" where it was cut, or is just as long."""
        fields = self.wording.read(raw)
        if self.cut is None:
            return fields
        answer, enough = self.cut(str(fields.get("answer", "")))
        return {**fields, "answer": answer, "enough": enough}
