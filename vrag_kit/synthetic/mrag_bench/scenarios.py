"""The nine scenarios: what each asks about which kinds of organism, and how its pictures
hide and show the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from vrag_kit.synthetic.mrag_bench.painting import draw_showing
from vrag_kit.synthetic.mrag_bench.perspective import covered, cropped, far, steep
from vrag_kit.synthetic.mrag_bench.regions import REGIONS, RegionTopic
from vrag_kit.synthetic.mrag_bench.topics import (
    KNOWN_PER_KIND,
    KNOWN_WORLD,
    OUTSIDE,
    Painter,
    QuestionTemplates,
    SpeciesTopic,
    Topic,
)
from vrag_kit.synthetic.mrag_bench.transformative import (
    damaged,
    fresh,
    withered,
    withered_appearance,
    young,
)
from vrag_kit.synthetic.mrag_bench.trays import make_tray
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import Species, stream

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

IN_PICTURE = QuestionTemplates()
_WHEN_GROWN = QuestionTemplates(
    color="What is the main color of the {part} of this {noun} when it is grown?",
    pattern="What pattern is on the {part} of this {noun} when it is grown?",
    name="Which species does this young {noun} belong to?",
)
_BEFORE = QuestionTemplates(
    color="What was the main color of the {part} of this {noun} before it was damaged?",
    pattern="What pattern was on the {part} of this {noun} before it was damaged?",
    name="Which species is this damaged {noun}?",
)
_AFTER = QuestionTemplates(
    color="What is the main color of the {part} of this {noun} when it has withered?",
    pattern="What pattern is on the {part} of this {noun} when it has withered?",
)


NAMED_SHARE = 0.25
"""Share of the questions that ask for a known species' name, where a scenario has such."""


@dataclass(frozen=True, slots=True)
class OrganismScenario:
    """How a scenario asks about organisms: what its queries hide, and its examples show."""

    hide: Painter
    parts: Parts
    show: Painter = draw_showing
    templates: QuestionTemplates = IN_PICTURE
    asks_names: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario of MRAG-Bench."""

    name: str  # as the paper says it, lower case
    label: str  # as the data set's column has it
    aspect: str
    painted: OrganismScenario | None = None  # None for trays and regions


_WITHERING = OrganismScenario(fresh, _WITHERED, withered, _AFTER, asks_names=False)
_EVERY = (
    Scenario("angle", "Angle", "Perspective", OrganismScenario(steep, _HIDDEN)),
    Scenario("partial", "Partial", "Perspective", OrganismScenario(cropped, _SMALL)),
    Scenario("scope", "Scope", "Perspective", OrganismScenario(far, _SMALLEST)),
    Scenario("occlusion", "Obstruction", "Perspective", OrganismScenario(covered, _COVERED)),
    Scenario(
        "temporal",
        "Temporal",
        "Transformative",
        OrganismScenario(young, _GROWN, draw_showing, _WHEN_GROWN),
    ),
    Scenario(
        "deformation",
        "Deformation",
        "Transformative",
        OrganismScenario(damaged, _TORN, draw_showing, _BEFORE),
    ),
    Scenario("incomplete", "Incomplete", "Transformative"),
    Scenario("biological", "Biological", "Transformative", _WITHERING),
    Scenario("others", "Others", "Others"),
)
SCENARIOS = {scenario.name: scenario for scenario in _EVERY}
"""Paper's name → scenario, in the order of its tables."""


def make_topic(scenario: str, key: str, *, known: tuple[str, int] | None = None) -> Topic:
    """The topic of that key: an invented species, tray or place; `known` (kind, number)
    asks for the name of a known species instead.
    """
    rng = stream(key, "topic")
    painted = SCENARIOS[scenario].painted
    if painted is None:
        kind = str(rng.choice(list(KINDS)))
        if scenario == "incomplete":
            return make_tray(key, numbered_species(key, kind, 0))
        return RegionTopic(key, REGIONS[str(rng.choice(list(REGIONS)))], kind)
    if known:
        return _named(painted, key, numbered_species(KNOWN_WORLD, *known))
    kind = str(rng.choice(list(painted.parts)))
    part = str(rng.choice(list(painted.parts[kind])))
    return _unnamed(painted, key, numbered_species(key, kind, 0), part)


def _named(painted: OrganismScenario, key: str, species: Species) -> SpeciesTopic:
    part = OUTSIDE[species.kind]
    words, hide = painted.templates, painted.hide
    return SpeciesTopic(key, species, part, species.outside, ("name",), words, hide, painted.show)


def _unnamed(painted: OrganismScenario, key: str, species: Species, part: str) -> SpeciesTopic:
    look = species.hidden.get(part, species.outside)
    if painted.show is withered:
        look = withered_appearance(species)
    asks = painted.parts[species.kind][part]
    words, hide = painted.templates, painted.hide
    return SpeciesTopic(key, species, part, look, asks, words, hide, painted.show)


def nameable_species(scenario: str) -> list[tuple[str, int]]:
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
