"""What can be asked of an entity: the question's words, the facts that settle it, and the answer.

Questions with a number, a place or a month are drawn so that yes and no are equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import Entity
from vrag_kit.synthetic.crag_mm.vocabulary import GROUNDS, MONTHS, REGIONS, choose
from vrag_kit.synthetic.world.traits import PATTERNS

RECOGNITION = "simple-recognition"
KNOWLEDGE = "simple-knowledge"
MULTI_HOP = "multi-hop"
COMPARISON = "comparison"
AGGREGATION = "aggregation"
REASONING = "reasoning"


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
_FIRST_HOP = {"capital": "region", "born": "describer"}
_GRAPH_FACTS = ("family", "describer", "year", "region", "length", "width")
_OTHERS_FACTS = (*_GRAPH_FACTS, "months", "found", "eaten", "smell")


class Reply(NamedTuple):
    """The expected answer."""

    steps: tuple[str, ...]  # facts on the way; last the two numbers that are compared
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

    @property
    def required_facts(self) -> tuple[str, ...]:
        """Keys of the facts that settle the question; empty where the image shows it."""
        if self.form == "seen":
            return (self.key, "months")
        if self.key in VISIBLE:
            return ()
        key = "look" if self.key == "name" else self.key
        return (_FIRST_HOP[key], key) if key in _FIRST_HOP else (key,)

    def question(self, it: str) -> str:
        """Return the question about `it`, such as "this moth"."""
        preposition = "in" if self.key == "region" else "on"
        name = self.other.name if self.other else ""
        forms = {
            "fact": FACTS[self.key].question.format(it=it),
            "more": f"Is {it} more than {self.number} mm {MEASURES.get(self.key)}?",
            "before": f"Was {it} described before {self.number}?",
            "longer": f"Is {it} longer than {name}?",
            "which": f"Which is longer, {it} or {name}?",
            "seen": f"Could one see {it} {preposition} {self.place} in {self.month}?",
            "that": f"Is that before {self.number}?",
        }
        if self.form == "that" and self.key in MEASURES:
            return f"Is that more than {self.number} mm?"
        return forms[self.form]

    def expected_answer(self, of: Entity) -> Reply:
        """Return the answer about an entity."""
        if self.form == "fact":
            return _fact_reply(self.key, of)
        if self.form == "seen":
            return self._occurrence(of)
        if self.other:
            return self._comparison(of, self.other)
        number, fact = of.numeric_fact(self.key), of.facts[self.key]
        yes = number > self.number if self.key in MEASURES else number < self.number
        sentences = {
            "more": f"it is {fact} {MEASURES.get(self.key)}",
            "before": f"it was described in {fact}",
            "that": f"it is {fact}",
        }
        return _yes_or_no(yes, (str(number), str(self.number)), sentences[self.form])

    def _comparison(self, of: Entity, other: Entity) -> Reply:
        own, others = of.facts["length"], other.facts["length"]
        numbers = of.numeric_fact("length"), other.numeric_fact("length")
        steps = (own, other.name, others, *map(str, numbers))
        is_longer = numbers[0] > numbers[1]
        if self.form == "which":
            name = of.name if is_longer else other.name
            return Reply(steps, name, f"{name} is longer.")
        return _yes_or_no(is_longer, steps, f"it is {own} long and {other.name} {others}")

    def _occurrence(self, of: Entity) -> Reply:
        """Where the place settles it, the steps end there."""
        place, months = of.facts[self.key], of.facts["months"]
        lives_there = self.place in of.list_fact(self.key)
        steps = (place, self.place, months, self.month) if lives_there else (place, self.place)
        yes = lives_there and self.month in of.list_fact("months")
        verb = "lives in" if self.key == "region" else "is found on"
        return _yes_or_no(yes, steps, f"it {verb} {place} and is seen in {months}")


def _fact_reply(key: str, of: Entity) -> Reply:
    look = of.species.outside
    visible = {"color": look.color, "pattern": look.pattern, "second": look.second}
    value = {**of.facts, **visible, "name": of.name}[key]
    steps = (of.facts[_FIRST_HOP[key]],) if key in _FIRST_HOP else ()
    return Reply(steps, value, FACTS[key].sentence.format(value=value))


def _yes_or_no(yes: bool, steps: tuple[str, ...], sentence: str) -> Reply:
    value = "yes" if yes else "no"
    return Reply(steps, value, f"{value.capitalize()}, {sentence}.")


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
        return Ask("before", "year", _near(of.numeric_fact("year"), 25, rng) + 1)
    key = choose(tuple(MEASURES), rng)
    return Ask("more", key, max(2, _near(of.numeric_fact(key), 12, rng)))


def follow_up(of: Entity, key: str, rng: np.random.Generator) -> Ask:
    """Draw a question about the number just answered."""
    if key in MEASURES:
        return Ask("that", key, max(2, _near(of.numeric_fact(key), 12, rng)))
    return Ask("that", key, _near(of.numeric_fact(key), 25, rng) + 1)


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


def _near(number: int, most: int, rng: np.random.Generator) -> int:
    """Up to `most` less than the number, or equal to it or more."""
    away = int(rng.integers(1, most + 1))
    return number - away if rng.random() < 0.5 else number + away - 1
