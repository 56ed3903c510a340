"""Simulation of MRAG-Bench's official scorer on an answer: its letter, a crash, a model call, or a
hang.

Based on the published `eval/score.py` and what it calls (last change 2025-01-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LETTERS = "ABCD"
_ENDS = ",.!?;:'"
_MOST_WORDS = 5


class ScorerOutcome(StrEnum):
    """Outcome of an answer, or of the whole run."""

    LETTER = "letter"
    """A letter is extracted."""
    WRONG = "wrong"
    """The answer counts as incorrect, whatever its text."""
    ASKS = "falls back to GPT-3.5"
    """GPT-3.5 extracts the letter."""
    CRASH = "crash"
    """An AttributeError ends the run, and no score is written."""
    HANG = "hang"
    """The call to GPT-3.5 fails and is retried 10,000,000 times."""


@dataclass(frozen=True, slots=True)
class OfficialExtraction:
    """Outcome of the official scorer for one answer."""

    outcome: ScorerOutcome
    letter: str = ""
    """A to D; "" unless the outcome is a letter."""

    def __str__(self) -> str:
        return self.letter or str(self.outcome)


def extract_officially(raw: str) -> OfficialExtraction:
    """Applies the official scorer's rules to an answer, before any model call.

    White space is stripped from both ends, then each of `, . ! ? ; : '` in turn. Candidates are
    letters in round brackets; without any, capitals between two spaces, including the article "A";
    of several, the last occurrence counts. Without any, an answer of more than five words crashes,
    as the scorer compares options' texts but holds a number instead; a shorter one goes to GPT-3.5,
    and an empty one is incorrect.
    """
    said = raw.strip()
    for sign in _ENDS:
        said = said.strip(sign)
    said = f" {said} "
    for shown in ("({})", " {} "):
        places = {letter: said.rfind(shown.format(letter)) for letter in LETTERS}
        letter = max(places, key=lambda each: places[each])
        if places[letter] >= 0:
            return OfficialExtraction(ScorerOutcome.LETTER, letter)
    if len(said.split()) > _MOST_WORDS:
        return OfficialExtraction(ScorerOutcome.CRASH)
    return OfficialExtraction(ScorerOutcome.ASKS if raw else ScorerOutcome.WRONG)


def after_model_call(found: OfficialExtraction, reply: str | None) -> OfficialExtraction:
    """Returns the outcome after the call to GPT-3.5: a bare letter counts, any other reply is
    incorrect; without a reply (None: no key, or openai 1.0 and above) the run hangs. All other
    outcomes stay.
    """
    if found.outcome is not ScorerOutcome.ASKS:
        return found
    if reply is None:
        return OfficialExtraction(ScorerOutcome.HANG)
    letter = reply.strip()
    wrong = OfficialExtraction(ScorerOutcome.WRONG)
    return (
        OfficialExtraction(ScorerOutcome.LETTER, letter)
        if letter and letter in tuple(LETTERS)
        else wrong
    )


def early_run_end(found: Sequence[OfficialExtraction]) -> tuple[ScorerOutcome, int] | None:
    """Returns how a run over these answers ends early, and at which position, from 0; None if it
    completes.
    """
    for place, each in enumerate(found):
        if each.outcome in (ScorerOutcome.CRASH, ScorerOutcome.HANG):
            return each.outcome, place
    return None
