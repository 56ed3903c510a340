"""The nine scenarios: what each asks about which kinds of organism, and how its pictures
hide and show the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from vrag_kit.fieldguide.album import invent_named
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.scenarios.painting import show
from vrag_kit.fieldguide.scenarios.perspective import covered, cropped, far, steep
from vrag_kit.fieldguide.scenarios.regions import REGIONS, RegionTopic
from vrag_kit.fieldguide.scenarios.topics import (
    KNOWN_PER_KIND,
    KNOWN_WORLD,
    OUTSIDE,
    Painter,
    SpeciesTopic,
    Topic,
    Wording,
)
from vrag_kit.fieldguide.scenarios.transformative import (
    damaged,
    fresh,
    withered,
    withered_look,
    young,
)
from vrag_kit.fieldguide.scenarios.trays import tray
from vrag_kit.fieldguide.traits import Species, stream

Parts = dict[str, dict[str, tuple[str, ...]]]
"""Kind → part → what its query hides of it."""

_BOTH = ("color", "pattern")
_HIDDEN: Parts = {kind.name: {part.name: _BOTH for part in kind.hidden} for kind in KINDS.values()}
_SMALL: Parts = {  # parts that leave much of the organism beside them
    "moth": {"hindwings": _BOTH},
    "bird": _HIDDEN["bird"],
    "flower": _HIDDEN["flower"],
    "fish": _HIDDEN["fish"],
    "lizard": {"throat fan": _BOTH},
}
_SMALLEST: Parts = {
    "moth": {"forewings": ("pattern",)},
    "bird": {"inside of the bill": _BOTH, "folded wings": ("pattern",)},
    "flower": {"stamen tips": _BOTH, "petals": ("pattern",)},
    "mushroom": {"cap": ("pattern",)},
    "fish": {"inside of the mouth": _BOTH, "flanks": ("pattern",)},
    "lizard": {"throat fan": _BOTH, "back": ("pattern",)},
}
_COVERED: Parts = {kind: {**_HIDDEN[kind], OUTSIDE[kind]: _BOTH} for kind in KINDS}
_GROWN: Parts = {kind: {**_HIDDEN[kind], OUTSIDE[kind]: ("pattern",)} for kind in KINDS}
_TORN: Parts = {
    "moth": {"hindwings": _BOTH},
    "bird": {"undersides of the wings": _BOTH},
    "flower": {"undersides of the leaves": _BOTH},
    "fish": {"dorsal fin": _BOTH},
    "lizard": {"throat fan": _BOTH},
}
_WITHERED: Parts = {kind: {OUTSIDE[kind]: _BOTH} for kind in ("flower", "mushroom")}

IN_PICTURE = Wording()
_WHEN_GROWN = Wording(
    color="What is the main color of the {part} of this {noun} when it is grown?",
    pattern="What pattern is on the {part} of this {noun} when it is grown?",
    name="Which species does this young {noun} belong to?",
)
_BEFORE = Wording(
    color="What was the main color of the {part} of this {noun} before it was damaged?",
    pattern="What pattern was on the {part} of this {noun} before it was damaged?",
    name="Which species is this damaged {noun}?",
)
_AFTER = Wording(
    color="What is the main color of the {part} of this {noun} when it has withered?",
    pattern="What pattern is on the {part} of this {noun} when it has withered?",
)


NAMED_SHARE = 0.25
"""Share of the questions that ask for a known species' name, where a scenario has such."""


@dataclass(frozen=True, slots=True)
class Painted:
    """How a scenario asks about organisms: what its queries hide, and its examples show."""

    hide: Painter
    parts: Parts
    show: Painter = show
    wording: Wording = IN_PICTURE
    asks_names: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario of MRAG-Bench."""

    name: str  # as the paper says it, lower case
    label: str  # as the data set's column has it
    aspect: str
    painted: Painted | None = None  # None for trays and regions


_WITHERING = Painted(fresh, _WITHERED, withered, _AFTER, asks_names=False)
_EVERY = (
    Scenario("angle", "Angle", "Perspective", Painted(steep, _HIDDEN)),
    Scenario("partial", "Partial", "Perspective", Painted(cropped, _SMALL)),
    Scenario("scope", "Scope", "Perspective", Painted(far, _SMALLEST)),
    Scenario("occlusion", "Obstruction", "Perspective", Painted(covered, _COVERED)),
    Scenario("temporal", "Temporal", "Transformative", Painted(young, _GROWN, show, _WHEN_GROWN)),
    Scenario(
        "deformation", "Deformation", "Transformative", Painted(damaged, _TORN, show, _BEFORE)
    ),
    Scenario("incomplete", "Incomplete", "Transformative"),
    Scenario("biological", "Biological", "Transformative", _WITHERING),
    Scenario("others", "Others", "Others"),
)
SCENARIOS = {scenario.name: scenario for scenario in _EVERY}
"""Paper's name → scenario, in the order of its tables."""


def topic(scenario: str, key: str, *, known: tuple[str, int] | None = None) -> Topic:
    """The topic of that key: an invented species, tray or place; `known` (kind, number)
    asks for the name of a known species instead.
    """
    rng = stream(key, "topic")
    painted = SCENARIOS[scenario].painted
    if painted is None:
        kind = str(rng.choice(list(KINDS)))
        if scenario == "incomplete":
            return tray(key, invent_named(key, kind, 0))
        return RegionTopic(key, REGIONS[str(rng.choice(list(REGIONS)))], kind)
    if known:
        return _named(painted, key, invent_named(KNOWN_WORLD, *known))
    kind = str(rng.choice(list(painted.parts)))
    part = str(rng.choice(list(painted.parts[kind])))
    return _unnamed(painted, key, invent_named(key, kind, 0), part)


def _named(painted: Painted, key: str, species: Species) -> SpeciesTopic:
    part = OUTSIDE[species.kind]
    words, hide = painted.wording, painted.hide
    return SpeciesTopic(key, species, part, species.outside, ("name",), words, hide, painted.show)


def _unnamed(painted: Painted, key: str, species: Species, part: str) -> SpeciesTopic:
    look = species.hidden.get(part, species.outside)
    if painted.show is withered:
        look = withered_look(species)
    asks = painted.parts[species.kind][part]
    words, hide = painted.wording, painted.hide
    return SpeciesTopic(key, species, part, look, asks, words, hide, painted.show)


def nameable(scenario: str) -> list[tuple[str, int]]:
    """(kind, number) of the known species that a scenario asks the names of; none in
    Incomplete, Biological and Others.
    """
    painted = SCENARIOS[scenario].painted
    if painted is None or not painted.asks_names:
        return []
    named = []
    for kind in painted.parts:
        named += [(kind, number) for number in range(KNOWN_PER_KIND)]
    return named
