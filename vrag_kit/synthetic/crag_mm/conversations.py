"""Conversations of 2 to 6 turns about a pictured entity: turns that stand alone, that
need the previous answer, and that go on after a change of subject.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import Entity
from vrag_kit.synthetic.crag_mm.questions import (
    AGGREGATION,
    COMPARISON,
    KNOWLEDGE,
    MEASURES,
    MULTI_HOP,
    REASONING,
    RECOGNITION,
    Ask,
    Reply,
    choose_question,
    fact_of_other,
    follow_up,
)
from vrag_kit.synthetic.crag_mm.vocabulary import choose, choose_by_share
from vrag_kit.synthetic.world.traits import stream

TYPE_SHARES = {
    RECOGNITION: 0.07,
    KNOWLEDGE: 0.37,
    COMPARISON: 0.16,
    MULTI_HOP: 0.17,
    AGGREGATION: 0.12,
    REASONING: 0.11,
}
"""Shares of the question types, near those of CRAG-MM's single-turn validation rows."""
LENGTH_SHARES = {2: 0.03, 3: 0.07, 4: 0.20, 5: 0.37, 6: 0.33}
"""Turns of a conversation → share (4.9 turns on average, as in CRAG-MM)."""
_NUMBERS = (*MEASURES, "year", "born")
_TRIES = 50


class Dependence(StrEnum):
    """On what a turn depends beside its own words and the picture."""

    NOTHING = "nothing"  # "this moth", "it" for the pictured one, or a name
    ANSWER = "previous answer"  # "Is that more than 40 mm?", "that one"
    SUBJECT = "change of subject"  # "it" for another one than the picture's, "And Talia osa?"


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a conversation and how it is answered."""

    question: str
    ask: Ask
    subject: Entity  # of whom it is asked
    pictured: Entity
    depends: Dependence

    @property
    def category(self) -> str:
        """One of the six question types."""
        return self.ask.category

    @property
    def dynamism(self) -> str:
        """Where and when it lives changes slowly; all else stays."""
        is_slow = self.ask.form == "seen" or self.ask.key in ("region", "months", "capital")
        return "slow-changing" if is_slow else "static"

    @property
    def reply(self) -> Reply:
        """The answer."""
        return self.ask.expected_answer(self.subject)

    @property
    def needs_history(self) -> bool:
        """Whether the question cannot be understood without the turns before it."""
        return self.depends is not Dependence.NOTHING

    @property
    def search_query(self) -> str:
        """The question that names its subject, as one would search for it."""
        ask = Ask("fact", self.ask.key) if self.ask.form == "that" else self.ask
        return ask.question(self.subject.name)


def make_single_turn(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, category: str
) -> Turn:
    """Return one question of a type about a pictured entity."""
    ask = choose_question(pictured, look_alikes, category, stream(name, "single"))
    return Turn(ask.question(f"this {pictured.kind}"), ask, pictured, pictured, Dependence.NOTHING)


def make_conversation(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, length: int
) -> tuple[Turn, ...]:
    """Return `length` turns about a pictured entity; the subject changes to look-alikes.

    Nothing is asked twice. The same name gives the same turns.
    """
    draft = _Draft(pictured, look_alikes, stream(name, "conversation"))
    while len(draft.turns) < length:
        for _ in range(_TRIES):
            turn = draft.next_turn()
            if turn and _topic(turn) not in map(_topic, draft.turns):
                draft.turns.append(turn)
                break
        else:
            raise RuntimeError(f"{name}: nothing left to ask about {pictured.name}")
    return tuple(draft.turns)


def _topic(turn: Turn) -> tuple[str, str, str]:
    form = "longer" if turn.ask.form == "which" else turn.ask.form
    return turn.subject.name, form, turn.ask.key


@dataclass(frozen=True, slots=True)
class _Draft:
    """A conversation as it grows."""

    pictured: Entity
    look_alikes: tuple[Entity, ...]
    rng: np.random.Generator
    turns: list[Turn] = field(default_factory=list)

    def next_turn(self) -> Turn | None:
        """A turn that may come next; None where the draw does not fit."""
        this = f"this {self.pictured.kind}"
        if not self.turns:
            return self._about(self.pictured, this)
        last, chance = self.turns[-1], self.rng.random(5)
        if last.ask.form == "which" and chance[0] < 0.8:
            return self._that_one(last)
        if last.ask.form == "fact" and last.ask.key in _NUMBERS and chance[1] < 0.6:
            ask = follow_up(last.subject, last.ask.key, self.rng)
            return self._turn(ask.question("that"), ask, last.subject, Dependence.ANSWER)
        if chance[2] < 0.12:
            return self._same_of_other(last)
        if chance[3] < 0.2:
            return self._change_subject(last)
        if last.subject is not self.pictured and chance[4] < 0.3:
            return self._about(self.pictured, this)
        return self._about(last.subject, "it")

    def _turn(self, question: str, ask: Ask, subject: Entity, depends: Dependence) -> Turn:
        return Turn(question, ask, subject, self.pictured, depends)

    def _about(self, subject: Entity, it: str) -> Turn:
        """A question of a drawn type."""
        is_pictured = subject is self.pictured
        category = choose_by_share(TYPE_SHARES, self.rng)
        if category == RECOGNITION and not is_pictured:
            category = KNOWLEDGE
        others = self.look_alikes if is_pictured else ()
        ask = choose_question(subject, others, category, self.rng)
        if ask.key == "name" and not is_pictured:
            ask = Ask("fact", "family")  # its name was mentioned
        depends = Dependence.NOTHING if is_pictured else Dependence.SUBJECT
        return self._turn(ask.question(it), ask, subject, depends)

    def _that_one(self, last: Turn) -> Turn:
        """A question about the entity that the previous answer names."""
        other, subject = last.ask.other, self.pictured
        if other and last.reply.value == other.name:
            subject = other
        ask = fact_of_other(self.rng)
        return self._turn(ask.question("that one"), ask, subject, Dependence.ANSWER)

    def _same_of_other(self, last: Turn) -> Turn | None:
        """The previous question about another entity: "And Talia osa?"."""
        other = self._other(last)
        cannot_repeat = last.ask.form != "fact" or last.category == RECOGNITION
        if other is None or cannot_repeat or last.ask.key == "name":
            return None
        return self._turn(f"And {other.name}?", last.ask, other, Dependence.SUBJECT)

    def _change_subject(self, last: Turn) -> Turn | None:
        """A question about a look-alike, which it names."""
        other = self._other(last)
        if other is None or last.subject is not self.pictured:
            return None
        ask = fact_of_other(self.rng)
        question = f"One often mistakes it for {other.name}. {ask.question('that one')}"
        return self._turn(question, ask, other, Dependence.NOTHING)

    def _other(self, last: Turn) -> Entity | None:
        """A look-alike that is not the subject."""
        others = [each for each in self.look_alikes if each is not last.subject]
        return choose(others, self.rng) if others else None
