"""Conversations of 2 to 6 turns about a pictured entity: turns that stand alone, that
need the previous answer, and that go on after a change of subject.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import Entity
from vrag_kit.synthetic.crag_mm.question_types import (
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
    has_pattern,
    make_before_year_question,
    make_follow_up_question,
    make_occurrence_question,
    make_threshold_question,
)
from vrag_kit.synthetic.crag_mm.vocabulary import choose, choose_by_share
from vrag_kit.synthetic.traits import stream

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
        """One of the six types."""
        return self.ask.category

    @property
    def dynamism(self) -> str:
        """Where and when it lives changes slowly; all else stays."""
        keys = [key for _, key in self.ask.required_facts(self.subject)]
        return "slow-changing" if set(keys) & set(_SLOW) else "static"

    @property
    def reply(self) -> Reply:
        """The answer and the facts on the way."""
        return self.ask.expected_answer(self.subject)

    @property
    def needs_history(self) -> bool:
        """Whether the question cannot be understood without the turns before it."""
        return self.depends is not Dependence.NOTHING

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


def make_single_turn(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, category: str
) -> Turn:
    """One question of a type about a pictured entity."""
    rng = stream(name, "single")
    ask = choose_question_type(pictured, look_alikes, category, rng)
    return Turn(ask.question(f"this {pictured.kind}"), ask, pictured, pictured, Dependence.NOTHING)


def make_conversation(
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


def _next(conversation: _Talk) -> Turn | None:
    """A turn that may come next; None where the draw does not fit."""
    if not conversation.turns:
        return _about(conversation, conversation.pictured, f"this {conversation.pictured.kind}")
    last, chance = conversation.turns[-1], conversation.rng.random(5)
    if isinstance(last.ask, Longer) and last.ask.which and chance[0] < 0.8:
        return _that_one(conversation, last)
    if isinstance(last.ask, FactAsk) and last.ask.key in _NUMBERS and chance[1] < 0.6:
        return _that(conversation, last)
    if chance[2] < 0.12:
        return _and_other(conversation, last)
    if chance[3] < 0.2:
        return _change(conversation)
    if conversation.subject is not conversation.pictured and chance[4] < 0.3:
        return _about(conversation, conversation.pictured, f"this {conversation.pictured.kind}")
    return _about(conversation, conversation.subject, "it")


def _that(conversation: _Talk, last: Turn) -> Turn:
    """Of the number just answered."""
    ask = make_follow_up_question(last.subject, last.ask.key, conversation.rng)
    return Turn(ask.question("that"), ask, last.subject, conversation.pictured, Dependence.ANSWER)


def _about(conversation: _Talk, subject: Entity, it: str) -> Turn:
    """A question of a drawn type."""
    pictured = subject is conversation.pictured
    category = choose_by_share(TYPE_SHARES, conversation.rng)
    if category == RECOGNITION and not pictured:
        category = KNOWLEDGE  # the other one is not in the picture
    ask = choose_question_type(
        subject, conversation.look_alikes if pictured else (), category, conversation.rng
    )
    if ask.key == "name" and not pictured:
        ask = FactAsk("family")  # its name has been said
    depends = Dependence.NOTHING if pictured else Dependence.SUBJECT
    return Turn(ask.question(it), ask, subject, conversation.pictured, depends)


def _that_one(conversation: _Talk, last: Turn) -> Turn:
    """Of the one that the previous answer names."""
    subject = conversation.pictured
    if isinstance(last.ask, Longer) and last.reply.value == last.ask.other.name:
        subject = last.ask.other
    ask = _fact(conversation.rng)
    return Turn(ask.question("that one"), ask, subject, conversation.pictured, Dependence.ANSWER)


def _and_other(conversation: _Talk, last: Turn) -> Turn | None:
    """The previous question again, of another one: "And Talia osa?"."""
    other = _other(conversation)
    if other is None or not isinstance(last.ask, FactAsk) or last.category == RECOGNITION:
        return None
    if last.ask.key == "name":
        return None
    question = f"And {other.name}?"
    return Turn(question, last.ask, other, conversation.pictured, Dependence.SUBJECT)


def _change(conversation: _Talk) -> Turn | None:
    """Of a look-alike, which the question names."""
    other = _other(conversation)
    if other is None or conversation.subject is not conversation.pictured:
        return None
    ask = _fact(conversation.rng)
    question = f"One often mistakes it for {other.name}. {ask.question('that one')}"
    return Turn(question, ask, other, conversation.pictured, Dependence.NOTHING)


def _other(conversation: _Talk) -> Entity | None:
    """A look-alike that is not the subject."""
    others = [each for each in conversation.look_alikes if each is not conversation.subject]
    return choose(others, conversation.rng) if others else None


_GRAPH_KEYS = ("family", "describer", "year", "region", "length", "width")
_FACT_KEYS = (*_GRAPH_KEYS, "months", "found", "eaten", "smell")


def _fact(rng: np.random.Generator) -> FactAsk:
    """A fact that another one than the pictured may be asked for."""
    return FactAsk(choose(_FACT_KEYS, rng))


def choose_question_type(
    of: Entity, others: tuple[Entity, ...], category: str, rng: np.random.Generator
) -> Ask:
    """What to ask of an entity, of a type; it is compared with one of the others, where
    there are any.
    """
    if category == RECOGNITION:
        keys = ("color", "pattern", "second") if has_pattern(of) else ("color", "pattern")
        return FactAsk(choose(keys, rng))
    if category == KNOWLEDGE:
        draw = rng.random()
        if draw < 0.15:
            return FactAsk("name")
        return FactAsk(choose(("eaten", "smell") if draw < 0.45 else _GRAPH_KEYS, rng))
    if category == AGGREGATION:
        return FactAsk(choose(("months", "found"), rng))
    if category == MULTI_HOP:
        return FactAsk(choose(("capital", "born"), rng))
    if category == REASONING:
        return make_occurrence_question(of, choose(("region", "found"), rng), rng)
    return _comparison(of, others, rng)


def _comparison(of: Entity, others: tuple[Entity, ...], rng: np.random.Generator) -> Ask:
    draw = rng.random()
    if others and draw < 0.5:
        other = choose(others, rng)
        return Longer(other, which=bool(rng.random() < 0.6))
    return (
        make_before_year_question(of, rng)
        if draw < 0.65
        else make_threshold_question(of, choose(tuple(MEASURES), rng), rng)
    )
