"""How models are asked: the options of `run_with`, and one round of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.generation.reading import Reader, read_tagged
from vrag_kit.plain import JsonView
from vrag_kit.types import Answer, Prompt

Watch = Callable[[Sequence[tuple[Prompt, Answer]]], None]
"""Looks at replies as they come; what it raises stops the asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How a run is done; the questions do not change with it."""

    device: str = "cpu"
    """Where local models run: "cpu", "cuda", "cuda:1"."""
    decoding: str | Mapping[str, Any] = "checkpoint"  # Any: numbers and flags
    """"checkpoint", "greedy", or sampling fields; see `load_generator`."""
    max_new_tokens: int = 128
    """Longest answer, in tokens."""
    batch_size: int = 16
    """How many prompts are answered at once: in one batch here, in parallel calls by an
    endpoint.
    """
    samples: int = 1
    """How often each question is asked, which makes sense where decoding samples."""
    retry_failures: bool = False
    """Whether what failed before is asked again; empty and cut-off answers have not."""

    @classmethod
    def of(cls, run_with: JsonView, default: Asking | None = None) -> Asking:
        """`default` with what `run_with` says; raises `VragError` for an unknown name
        and for fewer than one sample.
        """
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(run_with) - set(known)):
            raise VragError(
                f"run_with holds {unknown[0]!r}, which nothing reads; expected some of"
                f" {', '.join(known)}."
            )
        how = replace(default or cls(), **run_with)
        if how.samples < 1:
            raise VragError(f"samples is {how.samples}; expected 1 or more.")
        return how

    @classmethod
    def beside_answerers(cls, run_with: JsonView, default: Asking) -> Asking:
        """`default` with what of `run_with`, which says how the answerers are run, counts
        for other models too: device, batch_size and retry_failures. Raises as `of` does.
        """
        shared = ("device", "batch_size", "retry_failures")
        return cls.of({name: run_with[name] for name in shared if name in run_with}, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of questions: what they ask for, how words are read, and which sample
    it is.
    """

    what: str = "answers"
    """In messages: "answers", "verdicts"."""
    read: Reader = read_tagged
    """Finds an answer's fields in its words; the field "answer" must not be empty. Where
    it says that there is "enough", the end of a cut-off reply is not missed; where it
    says "unreadable", there is no answer.
    """
    sample: int = 0
    """Which repetition this is, from 0."""
    samples: int = 1
    """How many there will be."""
    silence_counts: bool = False
    """Whether an empty or cut-off reply is the model's answer, which is not asked again.
    From a judge, or a writer of questions, it is a failure.
    """
    watch: Watch | None = None
    """Sees what is stored before the first call, and then each new reply; called from
    several threads, and not at all where nothing is to be asked.
    """

    def __str__(self) -> str:
        if self.samples == 1:
            return self.what
        return f"{self.what}, sample {self.sample + 1} of {self.samples},"
