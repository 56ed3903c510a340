"""`Task`: one round of questions to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vrag_kit.generation.parsers import Reader, parse_tagged
from vrag_kit.types import Answer, Prompt

Watch = Callable[[Sequence[tuple[Prompt, Answer]]], None]
"""Receives replies as they arrive; an exception that it raises stops the round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One round of questions: what is generated, how it is parsed, and which sample it is."""

    what: str = "answers"
    """What is generated, as messages name it: "answers", "verdicts"."""
    read: Reader = parse_tagged
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
