"""Questions about an entity and their answers, and conversations of 2 to 6 turns about a pictured
one: turns that stand alone, that need the previous answer, and that change the subject.

Questions with a number, a place or a month are drawn so that yes and no are equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import Entity
from vrag_kit.synthetic.crag_mm.vocabulary import (
    GROUNDS,
    MONTHS,
    REGIONS,
    choose,
    choose_by_share,
)
from vrag_kit.synthetic.world.traits import PATTERNS, stream

RECOGNITION = "simple-recognition"
KNOWLEDGE = "simple-knowledge"
MULTI_HOP = "multi-hop"
COMPARISON = "comparison"
AGGREGATION = "aggregation"
REASONING = "reasoning"
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


class _Fact(NamedTuple):
    category: str
    question: str  # {it}: "this moth", "it", a name or "that one"
    sentence: str


FACTS: Mapping[str, _Fact] = {
    "color": _Fact(RECOGNITION, "What is the main color of {it}?", "It is {value}."),
    "pattern": _Fact(RECOGNITION, "Which pattern does {it} have?", "It is {value}."),
    "second": _Fact(
        RECOGNITION, "In which color is {it} patterned?", "It is patterned in {value}."
    ),
    "name": _Fact(KNOWLEDGE, "What is the name of {it}?", "It is {value}."),
    "family": _Fact(KNOWLEDGE, "To which family does {it} belong?", "It belongs to {value}."),
    "describer": _Fact(KNOWLEDGE, "Who described {it}?", "{value} described it."),
    "year": _Fact(KNOWLEDGE, "In which year was {it} described?", "It was described in {value}."),
    "region": _Fact(KNOWLEDGE, "In which region does {it} live?", "It lives in {value}."),
    "length": _Fact(KNOWLEDGE, "How long is {it}?", "It is {value} long."),
    "width": _Fact(KNOWLEDGE, "How wide is {it}?", "It is {value} wide."),
    "eaten": _Fact(KNOWLEDGE, "By which animals is {it} eaten?", "It is eaten by {value}."),
    "smell": _Fact(KNOWLEDGE, "Of what does {it} smell?", "It smells of {value}."),
    "months": _Fact(AGGREGATION, "In which months is {it} seen?", "It is seen in {value}."),
    "found": _Fact(AGGREGATION, "On which grounds is {it} found?", "It is found on {value}."),
    "capital": _Fact(
        MULTI_HOP,
        "What is the capital of the region in which {it} lives?",
        "The capital is {value}.",
    ),
    "born": _Fact(
        MULTI_HOP,
        "In which year was the person born who described {it}?",
        "That person was born in {value}.",
    ),
}
MEASURES = {"length": "long", "width": "wide"}
VISIBLE = ("color", "pattern", "second")
_NUMBERS = (*MEASURES, "year", "born")
_TRIES = 50
_GRAPH_FACTS = ("family", "describer", "year", "region", "length", "width")
_OTHERS_FACTS = (*_GRAPH_FACTS, "months", "found", "eaten", "smell")
_FORMS = {
    "more": ("Is {it} {limit} {long}?", "it is {fact} {long}"),
    "before": ("Was {it} described {limit}?", "it was described in {fact}"),
    "longer": ("Is {it} longer than {other}?", "it is {fact} long and {other} {others}"),
    "which": ("Which is longer, {it} or {other}?", ""),
    "seen": (
        "Could one see {it} {on} {place} in {month}?",
        "it {lives} {on} {fact} and is seen in {months}",
    ),
    "that": ("Is that {limit}?", "it is {fact}"),
}
"""Form → its question, and what follows yes or no in the answer."""


class Reply(NamedTuple):
    """The expected answer."""

    value: str  # the answer in as few words as possible
    sentence: str  # the whole answer


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of one of these forms:

    * "fact": for the fact `key` of `FACTS`;
    * "more": whether the measure `key` is more than `number` mm;
    * "before": whether the entity was described before the year `number`;
    * "longer", "which": whether the entity is longer than `other`; which of both is;
    * "seen": whether it could be seen at `place` ("region" or "found") in `month`;
    * "that": whether the number `key` just answered is more than `number` mm, or before that
      year; the question does not say which number it was.
    """

    form: str
    key: str
    number: int = 0
    other: Entity | None = None
    place: str = ""
    month: str = ""

    @property
    def category(self) -> str:
        """One of the six question types."""
        if self.form == "fact":
            return FACTS[self.key].category
        return REASONING if self.form == "seen" else COMPARISON

    def question(self, it: str) -> str:
        """Return the question about `it`, such as "this moth"."""
        if self.form == "fact":
            return FACTS[self.key].question.format(it=it)
        return _FORMS[self.form][0].format(it=it, **self._words())

    def expected_answer(self, of: Entity) -> Reply:
        """Return the answer about an entity."""
        if self.form == "fact":
            look = of.species.outside
            visible = {"color": look.color, "pattern": look.pattern, "second": look.second}
            value = {**of.facts, **visible, "name": of.name}[self.key]
            return Reply(value, FACTS[self.key].sentence.format(value=value))
        others = ""
        if self.form == "seen":
            in_months = self.month in of.list_fact("months")
            yes = self.place in of.list_fact(self.key) and in_months
        elif self.other:
            others = self.other.facts["length"]
            yes = of.numeric_fact("length") > self.other.numeric_fact("length")
            if self.form == "which":
                name = of.name if yes else self.other.name
                return Reply(name, f"{name} is longer.")
        elif self.key in MEASURES:
            yes = of.numeric_fact(self.key) > self.number
        else:
            yes = of.numeric_fact(self.key) < self.number
        facts = {"fact": of.facts[self.key], "months": of.facts["months"], "others": others}
        reason = _FORMS[self.form][1].format(**facts, **self._words())
        return Reply("yes", f"Yes, {reason}.") if yes else Reply("no", f"No, {reason}.")

    def _words(self) -> Mapping[str, str]:
        is_measure, is_region = self.key in MEASURES, self.key == "region"
        return {
            "limit": f"more than {self.number} mm" if is_measure else f"before {self.number}",
            "long": MEASURES.get(self.key, ""),
            "other": self.other.name if self.other else "",
            "lives": "lives" if is_region else "is found",
            "on": "in" if is_region else "on",
            "place": self.place,
            "month": self.month,
        }


def choose_question(
    of: Entity, others: tuple[Entity, ...], category: str, rng: np.random.Generator
) -> Ask:
    """Draw a question of a type about an entity, which is compared with one of the others."""
    if category == RECOGNITION:
        has_pattern = of.species.outside.pattern != PATTERNS[0]
        return Ask("fact", choose(VISIBLE if has_pattern else VISIBLE[:2], rng))
    if category == KNOWLEDGE:
        draw = rng.random()
        if draw < 0.15:
            return Ask("fact", "name")
        return Ask("fact", choose(("eaten", "smell") if draw < 0.45 else _GRAPH_FACTS, rng))
    if category == AGGREGATION:
        return Ask("fact", choose(("months", "found"), rng))
    if category == MULTI_HOP:
        return Ask("fact", choose(("capital", "born"), rng))
    if category == REASONING:
        return _occurrence(of, choose(("region", "found"), rng), rng)
    draw = rng.random()
    if others and draw < 0.5:
        other = choose(others, rng)
        return Ask("which" if rng.random() < 0.6 else "longer", "length", other=other)
    if draw < 0.65:
        return Ask("before", "year", _limit(of, "year", rng))
    key = choose(tuple(MEASURES), rng)
    return Ask("more", key, _limit(of, key, rng))


def follow_up(of: Entity, key: str, rng: np.random.Generator) -> Ask:
    """Draw a question about the number just answered."""
    return Ask("that", key, _limit(of, key, rng))


def fact_of_other(rng: np.random.Generator) -> Ask:
    """Draw a fact that can be asked of an entity that the image does not show."""
    return Ask("fact", choose(_OTHERS_FACTS, rng))


def _occurrence(of: Entity, key: str, rng: np.random.Generator) -> Ask:
    """No is in turn because of the place or the month."""
    place = choose(of.list_fact(key), rng)
    month = choose(of.list_fact("months"), rng)
    draw = rng.random()
    if draw < 0.25:
        places = REGIONS if key == "region" else GROUNDS
        place = choose([each for each in places if each not in of.list_fact(key)], rng)
    elif draw < 0.5:
        month = choose([each for each in MONTHS if each not in of.list_fact("months")], rng)
    return Ask("seen", key, place=place, month=month)


def _limit(of: Entity, key: str, rng: np.random.Generator) -> int:
    """A number that a measure exceeds, or that a year precedes, in half of the cases."""
    number, is_measure = of.numeric_fact(key), key in MEASURES
    away = int(rng.integers(1, (12 if is_measure else 25) + 1))
    near = number - away if rng.random() < 0.5 else number + away - 1
    return max(2, near) if is_measure else near + 1


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
