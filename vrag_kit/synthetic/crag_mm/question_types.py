"""What can be asked of an entity: the question's words, the facts that settle it, and the
answer, for whichever entity it is asked of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vrag_kit.synthetic.crag_mm.entities import Entity
from vrag_kit.synthetic.crag_mm.vocabulary import GROUNDS, MONTHS, REGIONS, choose
from vrag_kit.synthetic.traits import PATTERNS

RECOGNITION = "simple-recognition"
KNOWLEDGE = "simple-knowledge"
MULTI_HOP = "multi-hop"
COMPARISON = "comparison"
AGGREGATION = "aggregation"
REASONING = "reasoning"

Need = tuple[Entity, str]
"""A fact that settles a question: of whom, and a key of its facts."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What is to be said."""

    steps: tuple[str, ...]  # facts on the way; last the two numbers that are compared
    value: str  # the answer in as few words as can be
    sentence: str  # the whole answer


@dataclass(frozen=True, slots=True)
class _Form:
    """How a fact is asked for and told."""

    category: str
    question: str  # {it}: "this moth", "it", a name or "that one"
    sentence: str


FORMS: Mapping[str, _Form] = {
    "color": _Form(RECOGNITION, "What is the main color of {it}?", "It is {value}."),
    "pattern": _Form(RECOGNITION, "Which pattern does {it} have?", "It is {value}."),
    "second": _Form(
        RECOGNITION, "In which color is {it} patterned?", "It is patterned in {value}."
    ),
    "name": _Form(KNOWLEDGE, "What is the name of {it}?", "It is {value}."),
    "family": _Form(KNOWLEDGE, "To which family does {it} belong?", "It belongs to {value}."),
    "describer": _Form(KNOWLEDGE, "Who described {it}?", "{value} described it."),
    "year": _Form(KNOWLEDGE, "In which year was {it} described?", "It was described in {value}."),
    "region": _Form(KNOWLEDGE, "In which region does {it} live?", "It lives in {value}."),
    "length": _Form(KNOWLEDGE, "How long is {it}?", "It is {value} long."),
    "width": _Form(KNOWLEDGE, "How wide is {it}?", "It is {value} wide."),
    "eaten": _Form(KNOWLEDGE, "By which animals is {it} eaten?", "It is eaten by {value}."),
    "smell": _Form(KNOWLEDGE, "Of what does {it} smell?", "It smells of {value}."),
    "months": _Form(AGGREGATION, "In which months is {it} seen?", "It is seen in {value}."),
    "found": _Form(AGGREGATION, "On which grounds is {it} found?", "It is found on {value}."),
    "capital": _Form(
        MULTI_HOP,
        "What is the capital of the region in which {it} lives?",
        "The capital is {value}.",
    ),
    "born": _Form(
        MULTI_HOP,
        "In which year was the person born who described {it}?",
        "That person was born in {value}.",
    ),
}
"""Fact → how it is asked for; by `category`."""
MEASURES = {"length": "long", "width": "wide"}
_SEEN = ("color", "pattern", "second")
_ON_THE_WAY = {"capital": "region", "born": "describer"}


@dataclass(frozen=True, slots=True)
class FactAsk:
    """For one fact."""

    key: str  # of FORMS

    @property
    def category(self) -> str:
        """One of the six types."""
        return FORMS[self.key].category

    def question(self, it: str) -> str:
        """The question about `it`."""
        return FORMS[self.key].question.format(it=it)

    def required_facts(self, of: Entity) -> tuple[Need, ...]:
        """The facts that settle it; of what is seen, none; of the name, the look."""
        if self.key in _SEEN:
            return ()
        if self.key == "name":
            return ((of, "look"),)
        if self.key in _ON_THE_WAY:
            return ((of, _ON_THE_WAY[self.key]), (of, self.key))
        return ((of, self.key),)

    def expected_answer(self, of: Entity) -> Reply:
        """The answer."""
        look = of.species.outside
        seen = {"color": look.color, "pattern": look.pattern, "second": look.second}
        told = {**of.facts, **seen, "name": of.name}
        first = _ON_THE_WAY.get(self.key)
        value = told[self.key]
        sentence = FORMS[self.key].sentence.format(value=value)
        return Reply((of.facts[first],) if first else (), value, sentence)


@dataclass(frozen=True, slots=True)
class MoreThan:
    """Whether a measure is more than so many millimetres."""

    key: str  # of MEASURES
    n: int

    @property
    def category(self) -> str:
        """One of the six types."""
        return COMPARISON

    def question(self, it: str) -> str:
        """The question about `it`."""
        return f"Is {it} more than {self.n} mm {MEASURES[self.key]}?"

    def required_facts(self, of: Entity) -> tuple[Need, ...]:
        """The facts that settle it."""
        return ((of, self.key),)

    def expected_answer(self, of: Entity) -> Reply:
        """The answer."""
        said = f"it is {of.facts[self.key]} {MEASURES[self.key]}"
        steps = (str(of.numeric_fact(self.key)), str(self.n))
        return _yes_or_no(of.numeric_fact(self.key) > self.n, steps, said)


@dataclass(frozen=True, slots=True)
class Before:
    """Whether the year of its description is before another."""

    n: int
    key: str = "year"

    @property
    def category(self) -> str:
        """One of the six types."""
        return COMPARISON

    def question(self, it: str) -> str:
        """The question about `it`."""
        return f"Was {it} described before {self.n}?"

    def required_facts(self, of: Entity) -> tuple[Need, ...]:
        """The facts that settle it."""
        return ((of, "year"),)

    def expected_answer(self, of: Entity) -> Reply:
        """The answer."""
        year = of.facts["year"]
        steps = (year, str(self.n))
        return _yes_or_no(of.numeric_fact("year") < self.n, steps, f"it was described in {year}")


@dataclass(frozen=True, slots=True)
class Longer:
    """Which of two is longer; `which`: the name is asked for, otherwise yes or no."""

    other: Entity
    which: bool = False
    key: str = "length"

    @property
    def category(self) -> str:
        """One of the six types."""
        return COMPARISON

    def question(self, it: str) -> str:
        """The question about `it`."""
        if self.which:
            return f"Which is longer, {it} or {self.other.name}?"
        return f"Is {it} longer than {self.other.name}?"

    def required_facts(self, of: Entity) -> tuple[Need, ...]:
        """The facts that settle it."""
        return ((of, "length"), (self.other, "length"))

    def expected_answer(self, of: Entity) -> Reply:
        """The answer."""
        own, others = (each.facts["length"] for each in (of, self.other))
        compared = [str(each.numeric_fact("length")) for each in (of, self.other)]
        steps = (own, self.other.name, others, *compared)
        longer = of.numeric_fact("length") > self.other.numeric_fact("length")
        if self.which:
            name = of.name if longer else self.other.name
            return Reply(steps, name, f"{name} is longer.")
        said = f"it is {own} long and {self.other.name} {others}"
        return _yes_or_no(longer, steps, said)


@dataclass(frozen=True, slots=True)
class SeenThere:
    """Whether it could be seen somewhere in a month."""

    key: str  # "region" or "found"
    place: str
    month: str

    @property
    def category(self) -> str:
        """One of the six types."""
        return REASONING

    def question(self, it: str) -> str:
        """The question about `it`."""
        where = "in" if self.key == "region" else "on"
        return f"Could one see {it} {where} {self.place} in {self.month}?"

    def required_facts(self, of: Entity) -> tuple[Need, ...]:
        """The facts that settle it."""
        return ((of, self.key), (of, "months"))

    def expected_answer(self, of: Entity) -> Reply:
        """The answer; where the place settles it, its steps end there."""
        place, months = of.facts[self.key], of.facts["months"]
        there = self.place in of.list_fact(self.key)
        steps = (place, self.place, months, self.month) if there else (place, self.place)
        right = there and self.month in of.list_fact("months")
        where = "lives in" if self.key == "region" else "is found on"
        return _yes_or_no(right, steps, f"it {where} {place} and is seen in {months}")


@dataclass(frozen=True, slots=True)
class That:
    """Whether the number just answered is more than so many millimetres, or before a
    year; the question does not say which number it was.
    """

    key: str  # of the number: one of MEASURES, "year" or "born"
    n: int

    @property
    def category(self) -> str:
        """One of the six types."""
        return COMPARISON

    def question(self, it: str) -> str:
        """The question; it names nothing."""
        return (
            f"Is that more than {self.n} mm?"
            if self.key in MEASURES
            else f"Is that before {self.n}?"
        )

    def required_facts(self, of: Entity) -> tuple[Need, ...]:
        """The facts that settle it."""
        return FactAsk(self.key).required_facts(of)

    def expected_answer(self, of: Entity) -> Reply:
        """The answer."""
        number = of.numeric_fact(self.key)
        yes = number > self.n if self.key in MEASURES else number < self.n
        steps = (str(number), str(self.n))
        return _yes_or_no(yes, steps, f"it is {of.facts[self.key]}")


Ask = FactAsk | MoreThan | Before | Longer | SeenThere | That


def _yes_or_no(yes: bool, steps: tuple[str, ...], sentence: str) -> Reply:
    value = "yes" if yes else "no"
    return Reply(steps, value, f"{value.capitalize()}, {sentence}.")


def make_threshold_question(of: Entity, key: str, rng: np.random.Generator) -> MoreThan:
    """A threshold near the measure: yes and no are equally likely."""
    return MoreThan(key, max(2, _near(of.numeric_fact(key), 12, rng)))


def make_follow_up_question(of: Entity, key: str, rng: np.random.Generator) -> That:
    """A number near the one just answered: yes and no are equally likely."""
    if key in MEASURES:
        return That(key, max(2, _near(of.numeric_fact(key), 12, rng)))
    return That(key, _near(of.numeric_fact(key), 25, rng) + 1)


def make_before_year_question(of: Entity, rng: np.random.Generator) -> Before:
    """A year near the description's: yes and no are equally likely."""
    return Before(_near(of.numeric_fact("year"), 25, rng) + 1)


def _near(number: int, most: int, rng: np.random.Generator) -> int:
    """Up to `most` less than the number, or equal to it or more."""
    away = int(rng.integers(1, most + 1))
    return number - away if rng.random() < 0.5 else number + away - 1


def make_occurrence_question(of: Entity, key: str, rng: np.random.Generator) -> SeenThere:
    """Yes and no are equally likely; no in turn because of the place or the month."""
    place = choose(of.list_fact(key), rng)
    month = choose(of.list_fact("months"), rng)
    draw = rng.random()
    if draw < 0.25:
        places = REGIONS if key == "region" else GROUNDS
        place = choose([each for each in places if each not in of.list_fact(key)], rng)
    elif draw < 0.5:
        month = choose([each for each in MONTHS if each not in of.list_fact("months")], rng)
    return SeenThere(key, place, month)


def has_pattern(of: Entity) -> bool:
    """Whether one can ask for the colour of its pattern."""
    return of.species.outside.pattern != PATTERNS[0]
