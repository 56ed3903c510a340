"""What MRAG-Bench's own scorer does with an answer, told and not done: its letter, or
that it crashes, asks a model, or never ends.

Read from the published `eval/score.py` and what it calls (last change 2025-01-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LETTERS = "ABCD"
_ENDS = ",.!?;:'"
_MOST_WORDS = 5


class Outcome(StrEnum):
    """What becomes of an answer, or of the whole run."""

    LETTER = "letter"
    """A letter is found."""
    WRONG = "wrong"
    """It is counted as wrong, whatever it says."""
    ASKS = "asks GPT-3.5"
    """Its letter is whatever GPT-3.5 makes of it."""
    CRASH = "crash"
    """An AttributeError ends the run, and no score is written."""
    HANG = "hang"
    """The question to GPT-3.5 fails and is asked again, 10,000,000 times."""


@dataclass(frozen=True, slots=True)
class Official:
    """What the scorer makes of one answer."""

    outcome: Outcome
    letter: str = ""
    """A to D; "" unless the outcome is a letter."""

    def __str__(self) -> str:
        return self.letter or str(self.outcome)


def official_reading(raw: str) -> Official:
    """What the scorer makes of an answer, before anything is asked of a model.

    White space is taken off both ends, then each of `, . ! ? ; : '` in turn. Candidates
    are the letters in round brackets; without any, capitals between two spaces, the
    article "A" included; of several the one that occurs last. Without any, an answer of
    more than five words crashes, as options' texts are to be compared and a number
    stands in their place; a shorter one goes to GPT-3.5, and one that is empty is wrong.
    """
    said = raw.strip()
    for sign in _ENDS:
        said = said.strip(sign)
    said = f" {said} "
    for shown in ("({})", " {} "):
        places = {letter: said.rfind(shown.format(letter)) for letter in LETTERS}
        letter = max(places, key=lambda each: places[each])
        if places[letter] >= 0:
            return Official(Outcome.LETTER, letter)
    if len(said.split()) > _MOST_WORDS:
        return Official(Outcome.CRASH)
    return Official(Outcome.ASKS if raw else Outcome.WRONG)


def after_asking(found: Official, reply: str | None) -> Official:
    """What becomes of an answer that GPT-3.5 is asked about: a bare letter counts, any
    other reply is wrong; without any reply (None: no key, or openai 1.0 and above) the
    run hangs. All other outcomes stay.
    """
    if found.outcome is not Outcome.ASKS:
        return found
    if reply is None:
        return Official(Outcome.HANG)
    letter = reply.strip()
    wrong = Official(Outcome.WRONG)
    return Official(Outcome.LETTER, letter) if letter and letter in tuple(LETTERS) else wrong


def run_end(found: Sequence[Official]) -> tuple[Outcome, int] | None:
    """How a run over these answers ends early, and at which place, from 0; None when it
    reaches its end.
    """
    for place, each in enumerate(found):
        if each.outcome in (Outcome.CRASH, Outcome.HANG):
            return each.outcome, place
    return None
