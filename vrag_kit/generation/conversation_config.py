"""`ConversationConfig`: the history, search, early stopping and answer limit of conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import HISTORIES, History
from vrag_kit.generation.cutting import TokenLimit
from vrag_kit.generation.parsers import ParsedFields
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.spelling import did_you_mean
from vrag_kit.types import Benchmark, Context, Document, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedEvidence:
    """The documents that were retrieved for one turn."""

    documents: tuple[Document, ...] = ()
    """Documents that the turn may show, in order."""
    search_query: str = ""
    """The text that was searched with; "" when there was none."""
    rewrite_status: str = ""
    """The outcome of rewriting the question; "" without a rewriter."""
    n_skipped: int = 0
    """Retrieved documents with nothing to show; they are not in `documents`."""
    failure: Failure | None = None
    """Why no search was possible, as when the rewriting model did not answer; the turn then fails
    for that reason.
    """


class TurnSearch(Protocol):
    """Protocol of a search that retrieves the documents of turns."""

    def find(
        self, benchmark: Benchmark, contexts: Sequence[Context], histories: Sequence[History]
    ) -> Sequence[RetrievedEvidence]:
        """Return what was retrieved for each context with its history, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """Early stopping: when a conversation ends before its last turn."""

    score: Callable[[pd.DataFrame], Sequence[float]]
    """Maps the rows of an answer table, of one turn, to a score each; NaN if it is unknown."""
    rule: Callable[[Sequence[float]], int | None]
    """Maps the scores of a conversation's turns so far, in order, to the turn (from 0) at which it
    ends; None while it continues.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationConfig:
    """How conversations are run; a standalone question has a single turn."""

    prompts: PromptSet
    """The prompt set: templates of the turns, and the parser of their answers."""
    history: str = "generated"
    """What prompts contain of earlier turns: "generated", the model's own answers; "reference", the
    reference answers; "none", nothing.
    """
    search: TurnSearch | None = None
    """Search before each turn; None if the contexts hold their documents already."""
    stop: EarlyStop | None = None
    """Ends conversations early, without asking their later turns; None asks all."""
    cut: TokenLimit | None = None
    """Token limit of answers; None keeps whole answers."""

    def __post_init__(self) -> None:
        """Raise `VragError` for an unknown history."""
        if self.history not in HISTORIES:
            raise VragError(
                f"history is {self.history!r}; expected one of {', '.join(HISTORIES)}."
                f"{did_you_mean(self.history, HISTORIES)}"
            )

    def parse_answer(self, raw: str) -> ParsedFields:
        """Return the fields of an answer; "enough" says whether it reached the limit."""
        fields = self.prompts.read(raw)
        if self.cut is None:
            return fields
        answer, enough = self.cut(str(fields.get("answer", "")))
        return {**fields, "answer": answer, "enough": enough}
