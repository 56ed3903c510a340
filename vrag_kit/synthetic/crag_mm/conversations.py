"""Questions about an entity and their answers, and conversations of 2 to 6 turns about a pictured
one: turns that stand alone, that need the previous answer, and that change the subject.

Questions with a number, a place or a month are drawn so that yes and no are equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from numpy.random import Generator

from vrag_kit.synthetic.crag_mm.entities import (
    GROUNDS,
    MONTHS,
    REGIONS,
    SENTENCES,
    Entity,
    choose_by_share,
)
from vrag_kit.synthetic.world.traits import PATTERNS, choose, stream

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


QUESTIONS = {  # fact → its question about {it}: "this moth", "it", a name or "that one"
    "color": "What is the main color of {it}?",
    "pattern": "Which pattern does {it} have?",
    "second": "In which color is {it} patterned?",
    "name": "What is the name of {it}?",
    "family": "To which family does {it} belong?",
    "describer": "Who described {it}?",
    "year": "In which year was {it} described?",
    "region": "In which region does {it} live?",
    "length": "How long is {it}?",
    "width": "How wide is {it}?",
    "eaten": "By which animals is {it} eaten?",
    "smell": "Of what does {it} smell?",
    "months": "In which months is {it} seen?",
    "found": "On which grounds is {it} found?",
    "capital": "What is the capital of the region in which {it} lives?",
    "born": "In which year was the person born who described {it}?",
}
_ANSWERS = {
    **SENTENCES,
    "color": "It is {color}.",
    "pattern": "It is {pattern}.",
    "second": "It is patterned in {second}.",
    "name": "It is {name}.",
    "describer": "{describer} described it.",
    "length": "It is {length} long.",
    "width": "It is {width} wide.",
    "capital": "The capital is {capital}.",
    "born": "That person was born in {born}.",
}
MEASURES = {"length": "long", "width": "wide"}
VISIBLE = ("color", "pattern", "second")
_KEYS = {RECOGNITION: VISIBLE, AGGREGATION: ("months", "found"), MULTI_HOP: ("capital", "born")}
"""Question type → its facts; all others are of `KNOWLEDGE`."""
_NUMBERS = (*MEASURES, "year", "born")
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

    * "fact": for the fact `key` of `QUESTIONS`;
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
            return next((name for name, keys in _KEYS.items() if self.key in keys), KNOWLEDGE)
        return REASONING if self.form == "seen" else COMPARISON

    def question(self, it: str) -> str:
        """Return the question about `it`, such as "this moth"."""
        if self.form == "fact":
            return QUESTIONS[self.key].format(it=it)
        return _FORMS[self.form][0].format(it=it, **self._words())

    def expected_answer(self, of: Entity) -> Reply:
        """Return the answer about an entity."""
        if self.form == "fact":
            facts = {**of.facts, **asdict(of.species.outside), "name": of.name}
            return Reply(facts[self.key], _ANSWERS[self.key].format(**facts))
        others = self.other.facts["length"] if self.other else ""
        if self.form == "seen":
            in_months = self.month in of.list_fact("months")
            yes = self.place in of.list_fact(self.key) and in_months
        else:
            number = self.other.numeric_fact("length") if self.other else self.number
            own = of.numeric_fact(self.key)
            yes = own > number if self.key in MEASURES else own < number
        if self.other and self.form == "which":
            name = of.name if yes else self.other.name
            return Reply(name, f"{name} is longer.")
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


def choose_question(of: Entity, others: tuple[Entity, ...], category: str, rng: Generator) -> Ask:
    """Draw a question of a type about an entity, which is compared with one of the others."""
    if category in _KEYS:
        is_plain = of.species.outside.pattern == PATTERNS[0]
        keys = VISIBLE[:2] if category == RECOGNITION and is_plain else _KEYS[category]
        return Ask("fact", choose(keys, rng))
    if category == REASONING:
        return _occurrence(of, choose(("region", "found"), rng), rng)
    draw = rng.random()
    if category == KNOWLEDGE and draw < 0.15:
        return Ask("fact", "name")
    if category == KNOWLEDGE:
        return Ask("fact", choose(("eaten", "smell") if draw < 0.45 else _GRAPH_FACTS, rng))
    if others and draw < 0.5:
        other = choose(others, rng)
        return Ask("which" if rng.random() < 0.6 else "longer", "length", other=other)
    if draw < 0.65:
        return Ask("before", "year", _limit(of, "year", rng))
    key = choose(tuple(MEASURES), rng)
    return Ask("more", key, _limit(of, key, rng))


def _occurrence(of: Entity, key: str, rng: Generator) -> Ask:
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


def _limit(of: Entity, key: str, rng: Generator) -> int:
    """A number that a measure exceeds, or that a year precedes, in half of the cases."""
    number, is_measure = of.numeric_fact(key), key in MEASURES
    away = int(rng.integers(1, (12 if is_measure else 25) + 1))
    near = number - away if rng.random() < 0.5 else number + away - 1
    return max(2, near) if is_measure else near + 1


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a conversation and how it is answered."""

    question: str
    ask: Ask
    subject: Entity  # of whom it is asked
    pictured: Entity
    needs_history: bool = False
    """Whether it depends on the turns before it: on the answer ("Is that more than 40 mm?"), or on
    a change of subject ("it" for another one than the picture's, "And Talia osa?").
    """

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
    def search_query(self) -> str:
        """The question that names its subject, as one would search for it."""
        ask = Ask("fact", self.ask.key) if self.ask.form == "that" else self.ask
        return ask.question(self.subject.name)


def make_single_turn(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, category: str
) -> Turn:
    """Return one question of a type about a pictured entity."""
    ask = choose_question(pictured, look_alikes, category, stream(name, "single"))
    return Turn(ask.question(f"this {pictured.kind}"), ask, pictured, pictured)


def make_conversation(
    pictured: Entity, look_alikes: tuple[Entity, ...], name: str, length: int
) -> tuple[Turn, ...]:
    """Return `length` turns about a pictured entity; the subject changes to look-alikes.

    Nothing is asked twice. The same name gives the same turns.
    """
    rng = stream(name, "conversation")
    turns: list[Turn] = []
    while len(turns) < length:
        turn = _next_turn(pictured, look_alikes, turns, rng)
        if turn and _topic(turn) not in map(_topic, turns):
            turns.append(turn)
    return tuple(turns)


def _topic(turn: Turn) -> tuple[str, str, str]:
    form = "longer" if turn.ask.form == "which" else turn.ask.form
    return turn.subject.name, form, turn.ask.key


def _next_turn(
    pictured: Entity, look_alikes: tuple[Entity, ...], turns: list[Turn], rng: Generator
) -> Turn | None:
    """A turn that may come next; None where the draw does not fit."""
    if not turns:
        return _about(pictured, pictured, look_alikes, rng, is_first=True)
    last, chance = turns[-1], rng.random(5)
    is_fact = last.ask.form == "fact"
    if last.ask.form == "which" and chance[0] < 0.8:  # about the one that the answer names
        named = last.ask.other
        subject = named if named and last.reply.value == named.name else pictured
        ask = Ask("fact", choose(_OTHERS_FACTS, rng))
        return Turn(ask.question("that one"), ask, subject, pictured, True)
    if is_fact and last.ask.key in _NUMBERS and chance[1] < 0.6:
        ask = Ask("that", last.ask.key, _limit(last.subject, last.ask.key, rng))
        return Turn(ask.question("that"), ask, last.subject, pictured, True)
    if chance[2] >= 0.12 and chance[3] >= 0.2:
        goes_back = last.subject is not pictured and chance[4] < 0.3
        subject = pictured if goes_back else last.subject
        return _about(subject, pictured, look_alikes, rng, is_first=goes_back)
    others = [each for each in look_alikes if each is not last.subject]
    if not others:
        return None
    other = choose(others, rng)
    if chance[2] < 0.12:  # the previous question about another one
        can_repeat = is_fact and last.ask.category != RECOGNITION and last.ask.key != "name"
        return Turn(f"And {other.name}?", last.ask, other, pictured, True) if can_repeat else None
    if last.subject is not pictured:
        return None
    ask = Ask("fact", choose(_OTHERS_FACTS, rng))
    question = f"One often mistakes it for {other.name}. {ask.question('that one')}"
    return Turn(question, ask, other, pictured)


def _about(
    subject: Entity,
    pictured: Entity,
    look_alikes: tuple[Entity, ...],
    rng: Generator,
    *,
    is_first: bool,
) -> Turn:
    """A question of a drawn type."""
    is_pictured = subject is pictured
    category = choose_by_share(TYPE_SHARES, rng)
    if category == RECOGNITION and not is_pictured:
        category = KNOWLEDGE
    ask = choose_question(subject, look_alikes if is_pictured else (), category, rng)
    if ask.key == "name" and not is_pictured:
        ask = Ask("fact", "family")  # its name was mentioned
    it = f"this {pictured.kind}" if is_first else "it"
    return Turn(ask.question(it), ask, subject, pictured, not is_pictured)
