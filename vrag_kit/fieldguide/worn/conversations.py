"""Conversations of 2 to 6 turns about a pictured entity: turns that stand alone, that
need the previous answer, and that go on after a change of subject.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from vrag_kit.fieldguide.traits import stream
from vrag_kit.fieldguide.worn.asks import (
    AGGREGATION,
    COMPARISON,
    KNOWLEDGE,
    MEASURES,
    MULTI_HOP,
    REASONING,
    RECOGNITION,
    Ask,
    FactAsk,
    Longer,
    Reply,
    That,
    before,
    is_patterned,
    more_than,
    seen_there,
    that,
)
from vrag_kit.fieldguide.worn.entities import Entity
from vrag_kit.fieldguide.worn.vocab import drawn, pick

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
_SLOW = ("region", "months", "capital")
_NUMBERS = (*MEASURES, "year", "born")
_TRIES = 50


class Depends(StrEnum):
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
    depends: Depends

    @property
    def category(self) -> str:
        """One of the six types."""
        return self.ask.category

    @property
    def dynamism(self) -> str:
        """Where and when it lives changes slowly; all else stays."""
        keys = [key for _, key in self.ask.needs(self.subject)]
        return "slow-changing" if set(keys) & set(_SLOW) else "static"

    @property
    def reply(self) -> Reply:
        """The answer and the facts on the way."""
        return self.ask.reply(self.subject)

    @property
    def needs_history(self) -> bool:
        """Whether the question cannot be understood without the turns before it."""
        return self.depends is not Depends.NOTHING

    @property
    def search_query(self) -> str:
        """The question as one would search who knows its subject's name."""
        ask = FactAsk(self.ask.key) if isinstance(self.ask, That) else self.ask
        return ask.question(self.subject.name)


@dataclass(slots=True)
class _Talk:
    """A conversation as it grows."""

    pictured: Entity
    look_alikes: tuple[Entity, ...]
    rng: np.random.Generator
    turns: list[Turn] = field(default_factory=list)
    done: set[tuple[str, str]] = field(default_factory=set)

    @property
    def subject(self) -> Entity:
        return self.turns[-1].subject if self.turns else self.pictured

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self.done.add(_mark(turn.ask, turn.subject))

    def new(self, ask: Ask, subject: Entity) -> bool:
        """Whether this was not asked before."""
        return _mark(ask, subject) not in self.done


def _mark(ask: Ask, subject: Entity) -> tuple[str, str]:
    return (subject.name, f"{type(ask).__name__} {ask.key}")


def single_turn(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, category: str
) -> Turn:
    """One question of a type about a pictured entity."""
    rng = stream(name, "single")
    ask = ask_about(pictured, look_alikes, category, rng)
    return Turn(ask.question(f"this {pictured.kind}"), ask, pictured, pictured, Depends.NOTHING)


def conversation(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, length: int
) -> tuple[Turn, ...]:
    """`length` turns about a pictured entity; look-alikes are what the subject changes to.

    Nothing is asked twice. The same name gives the same turns.
    """
    talk = _Talk(pictured, look_alikes, stream(name, "conversation"))
    while len(talk.turns) < length:
        for _ in range(_TRIES):
            turn = _next(talk)
            if turn and talk.new(turn.ask, turn.subject):
                talk.add(turn)
                break
        else:
            raise RuntimeError(f"{name}: nothing left to ask about {pictured.name}")
    return tuple(talk.turns)


def _next(talk: _Talk) -> Turn | None:
    """A turn that may come next; None where the draw does not fit."""
    if not talk.turns:
        return _about(talk, talk.pictured, f"this {talk.pictured.kind}")
    last, chance = talk.turns[-1], talk.rng.random(5)
    if isinstance(last.ask, Longer) and last.ask.which and chance[0] < 0.8:
        return _that_one(talk, last)
    if isinstance(last.ask, FactAsk) and last.ask.key in _NUMBERS and chance[1] < 0.6:
        return _that(talk, last)
    if chance[2] < 0.12:
        return _and_other(talk, last)
    if chance[3] < 0.2:
        return _change(talk)
    if talk.subject is not talk.pictured and chance[4] < 0.3:
        return _about(talk, talk.pictured, f"this {talk.pictured.kind}")
    return _about(talk, talk.subject, "it")


def _that(talk: _Talk, last: Turn) -> Turn:
    """Of the number just answered."""
    ask = that(last.subject, last.ask.key, talk.rng)
    return Turn(ask.question("that"), ask, last.subject, talk.pictured, Depends.ANSWER)


def _about(talk: _Talk, subject: Entity, it: str) -> Turn:
    """A question of a drawn type."""
    pictured = subject is talk.pictured
    category = drawn(TYPE_SHARES, talk.rng)
    if category == RECOGNITION and not pictured:
        category = KNOWLEDGE  # the other one is not in the picture
    ask = ask_about(subject, talk.look_alikes if pictured else (), category, talk.rng)
    if ask.key == "name" and not pictured:
        ask = FactAsk("family")  # its name has been said
    depends = Depends.NOTHING if pictured else Depends.SUBJECT
    return Turn(ask.question(it), ask, subject, talk.pictured, depends)


def _that_one(talk: _Talk, last: Turn) -> Turn:
    """Of the one that the previous answer names."""
    subject = talk.pictured
    if isinstance(last.ask, Longer) and last.reply.value == last.ask.other.name:
        subject = last.ask.other
    ask = _fact(talk.rng)
    return Turn(ask.question("that one"), ask, subject, talk.pictured, Depends.ANSWER)


def _and_other(talk: _Talk, last: Turn) -> Turn | None:
    """The previous question again, of another one: "And Talia osa?"."""
    other = _other(talk)
    if other is None or not isinstance(last.ask, FactAsk) or last.category == RECOGNITION:
        return None
    if last.ask.key == "name":
        return None
    question = f"And {other.name}?"
    return Turn(question, last.ask, other, talk.pictured, Depends.SUBJECT)


def _change(talk: _Talk) -> Turn | None:
    """Of a look-alike, which the question names."""
    other = _other(talk)
    if other is None or talk.subject is not talk.pictured:
        return None
    ask = _fact(talk.rng)
    question = f"One often mistakes it for {other.name}. {ask.question('that one')}"
    return Turn(question, ask, other, talk.pictured, Depends.NOTHING)


def _other(talk: _Talk) -> Entity | None:
    """A look-alike that is not the subject."""
    others = [each for each in talk.look_alikes if each is not talk.subject]
    return pick(others, talk.rng) if others else None


_GRAPH_KEYS = ("family", "describer", "year", "region", "length", "width")
_FACT_KEYS = (*_GRAPH_KEYS, "months", "found", "eaten", "smell")


def _fact(rng: np.random.Generator) -> FactAsk:
    """A fact that another one than the pictured may be asked for."""
    return FactAsk(pick(_FACT_KEYS, rng))


def ask_about(
    of: Entity, others: tuple[Entity, ...], category: str, rng: np.random.Generator
) -> Ask:
    """What to ask of an entity, of a type; it is compared with one of the others, where
    there are any.
    """
    if category == RECOGNITION:
        keys = ("color", "pattern", "second") if is_patterned(of) else ("color", "pattern")
        return FactAsk(pick(keys, rng))
    if category == KNOWLEDGE:
        draw = rng.random()
        if draw < 0.15:
            return FactAsk("name")
        return FactAsk(pick(("eaten", "smell") if draw < 0.45 else _GRAPH_KEYS, rng))
    if category == AGGREGATION:
        return FactAsk(pick(("months", "found"), rng))
    if category == MULTI_HOP:
        return FactAsk(pick(("capital", "born"), rng))
    if category == REASONING:
        return seen_there(of, pick(("region", "found"), rng), rng)
    return _comparison(of, others, rng)


def _comparison(of: Entity, others: tuple[Entity, ...], rng: np.random.Generator) -> Ask:
    draw = rng.random()
    if others and draw < 0.5:
        other = pick(others, rng)
        return Longer(other, which=bool(rng.random() < 0.6))
    return before(of, rng) if draw < 0.65 else more_than(of, pick(tuple(MEASURES), rng), rng)
