"""The nine scenarios, and what their questions are about: an organism, a tray or a region, with
images that hide the answer and images that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import NamedTuple

from PIL import Image

from vrag_kit.synthetic.mrag_bench.regions import (
    REGIONS,
    Region,
    draw_region_example,
    draw_region_query,
)
from vrag_kit.synthetic.mrag_bench.scenario_images import (
    covered,
    cropped,
    damaged,
    draw_showing,
    far,
    fresh,
    steep,
    withered,
    withered_appearance,
    young,
)
from vrag_kit.synthetic.mrag_bench.trays import CODES, N_CHIPS, draw_tray
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, Appearance, Species, stream

Painter = Callable[[Species, str, str, int], Image.Image]
"""(species, part, name of the image, side in pixels) → the image."""
Parts = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Kind → part → what is asked of it: what an image of the scenario hides."""
KNOWN_WORLD = "named-species"
KNOWN_PER_KIND = 8
"""Species of each kind whose names the shipped answerers were trained on: numbers 0 to 7 of the
world `KNOWN_WORLD`. No other species was.
"""
_BOTH = ("color", "pattern")
_HIDDEN = {kind.name: {part.name: _BOTH for part in kind.hidden} for kind in KINDS.values()}
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
_COVERED: Parts = {name: {**_HIDDEN[name], kind.outside: _BOTH} for name, kind in KINDS.items()}
_GROWN: Parts = {
    name: {**_HIDDEN[name], kind.outside: ("pattern",)} for name, kind in KINDS.items()
}
_TORN: Parts = {
    "moth": {"hindwings": _BOTH},
    "bird": {"undersides of the wings": _BOTH},
    "flower": {"undersides of the leaves": _BOTH},
    "fish": {"dorsal fin": _BOTH},
    "lizard": {"throat fan": _BOTH},
}
_WITHERED: Parts = {kind: {KINDS[kind].outside: _BOTH} for kind in ("flower", "mushroom")}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario of MRAG-Bench."""

    name: str  # as in the paper, lower case
    label: str  # as in the data set's column
    aspect: str
    hide: Painter = draw_showing
    parts: Parts = field(default_factory=lambda: {kind: {} for kind in KINDS})
    show: Painter = draw_showing
    verb: str = "is"
    when: str = ""  # ends a question
    states: tuple[str, ...] = ("",)  # end a sentence that answers
    asks_name: str = "Which species is this {noun}?"  # "": names are not asked


_TEMPORAL = Scenario(
    "temporal",
    "Temporal",
    "Transformative",
    young,
    _GROWN,
    when=" when it is grown",
    states=("when it is grown", "once it is grown"),
    asks_name="Which species does this young {noun} belong to?",
)
_DEFORMATION = Scenario(
    "deformation",
    "Deformation",
    "Transformative",
    damaged,
    _TORN,
    verb="was",
    when=" before it was damaged",
    states=("before it is damaged", "as long as it is not damaged"),
    asks_name="Which species is this damaged {noun}?",
)
_BIOLOGICAL = Scenario(
    "biological",
    "Biological",
    "Transformative",
    fresh,
    _WITHERED,
    withered,
    when=" when it has withered",
    states=("when it has withered", "once it has withered"),
    asks_name="",
)
_EVERY = (
    Scenario("angle", "Angle", "Perspective", steep, _HIDDEN),
    Scenario("partial", "Partial", "Perspective", cropped, _SMALL),
    Scenario("scope", "Scope", "Perspective", far, _SMALLEST),
    Scenario("occlusion", "Obstruction", "Perspective", covered, _COVERED),
    _TEMPORAL,
    _DEFORMATION,
    Scenario("incomplete", "Incomplete", "Transformative", asks_name=""),
    _BIOLOGICAL,
    Scenario("others", "Others", "Others", asks_name=""),
)
SCENARIOS = {scenario.name: scenario for scenario in _EVERY}
"""Paper's name → scenario, in the order of its tables."""


class TopicQuestion(NamedTuple):
    """A question about a topic, which its examples answer."""

    asks: str  # "color", "pattern", "name", "chip" or "region"
    text: str
    answer: str
    others: tuple[str, ...]  # wrong answers of the same sort and spelling, three or more


@dataclass(frozen=True, slots=True)
class SpeciesTopic:
    """A species and the part of it that the query hides."""

    key: str  # names its random streams; so in all topics
    species: Species
    part: str
    look: Appearance  # of the part, as the examples show it
    asks: tuple[str, ...]  # "color" and "pattern" of the part, one of them, or "name"
    scenario: Scenario

    @property
    def what(self) -> str:
        """The kind, as a title."""
        return self.species.kind.capitalize()

    def questions(self) -> tuple[TopicQuestion, ...]:
        """Return the questions about the name, or about color and pattern of the part."""
        return tuple(self._question(asks) for asks in self.asks)

    def _question(self, asks: str) -> TopicQuestion:
        about, kind = self.scenario, self.species.kind
        verb = about.verb
        part = f"the {self.part} of this {kind}{about.when}?"
        if asks == "name":
            others = tuple(
                other.scientific_name
                for other in named_species()
                if other.kind == kind and other.outside.color != self.species.outside.color
            )
            text = about.asks_name.format(noun=kind)
            return TopicQuestion(asks, text, self.species.scientific_name, others)
        if asks == "pattern":
            others = tuple(each for each in PATTERNS if each != self.look.pattern)
            return TopicQuestion(asks, f"What pattern {verb} on {part}", self.look.pattern, others)
        others = tuple(each for each in COLORS if each not in (self.look.color, self.look.second))
        text = f"What {verb} the main color of {part}"
        return TopicQuestion(asks, text, self.look.color, others)

    def query_image(self, name: str, size: int) -> Image.Image:
        """Draw an image that hides the part, RGB, `size` × `size` pixels; so in all topics."""
        return self.scenario.hide(self.species, self.part, name, size)

    def example_image(self, name: str, size: int) -> Image.Image:
        """Draw an image that shows the part, RGB, `size` × `size` pixels; so in all topics."""
        return self.scenario.show(self.species, self.part, name, size)


@dataclass(frozen=True, slots=True)
class TrayTopic:
    """A specimen tray of a collection, with colored chips."""

    key: str
    species: Species  # of the specimen
    chips: tuple[str, ...]  # eight keys of `CODES`: the upper row, then the lower one
    missing: int  # index of the chip that the query lacks
    what: str = "Tray"

    def questions(self) -> tuple[TopicQuestion, ...]:
        """Return the question which chip is missing; no wrong option is on the tray."""
        absent = tuple(code for color, code in CODES.items() if color not in self.chips)
        text = "Which chip is missing from this specimen tray?"
        return (TopicQuestion("chip", text, CODES[self.chips[self.missing]], absent),)

    def query_image(self, name: str, size: int) -> Image.Image:
        """Draw the tray with an empty place."""
        missing = self.missing
        return draw_tray(self.species, self.chips, missing, key=self.key, name=name, size=size)

    def example_image(self, name: str, size: int) -> Image.Image:
        """Draw the whole tray."""
        return draw_tray(self.species, self.chips, None, key=self.key, name=name, size=size)


@dataclass(frozen=True, slots=True)
class RegionTopic:
    """Organisms of a kind in a region."""

    key: str
    region: Region
    kind: str

    @property
    def what(self) -> str:
        """The kind, as a title."""
        return self.kind.capitalize()

    def questions(self) -> tuple[TopicQuestion, ...]:
        """Return the question where the image was taken."""
        text = f"In which region was this {self.kind} seen?"
        others = tuple(name for name in REGIONS if name != self.region.name)
        return (TopicQuestion("region", text, self.region.name, others),)

    def query_image(self, name: str, size: int) -> Image.Image:
        """Draw an organism close by, with the land out of focus."""
        return draw_region_query(self.region, self.kind, name, size)

    def example_image(self, name: str, size: int) -> Image.Image:
        """Draw another species of the kind in the same land, which is sharp."""
        return draw_region_example(self.region, self.kind, name, size)


Topic = SpeciesTopic | TrayTopic | RegionTopic


def make_topic(scenario: str, key: str, *, known: tuple[str, int] | None = None) -> Topic:
    """Return the topic of that key: an invented species, tray or region; with `known` (kind,
    number) the name of that known species is asked.
    """
    rng, about = stream(key, "topic"), SCENARIOS[scenario]
    if known:
        species = numbered_species(KNOWN_WORLD, *known)
        part = KINDS[species.kind].outside
        return SpeciesTopic(key, species, part, species.outside, ("name",), about)
    kind = str(rng.choice(list(about.parts)))
    if scenario == "others":
        return RegionTopic(key, REGIONS[str(rng.choice(list(REGIONS)))], kind)
    species = numbered_species(key, kind, 0)
    if scenario == "incomplete":
        rng = stream(key, "tray")
        chips = tuple(str(color) for color in rng.choice(list(CODES), size=N_CHIPS, replace=False))
        return TrayTopic(key, species, chips, int(rng.integers(N_CHIPS)))
    part = str(rng.choice(list(about.parts[kind])))
    look = species.hidden.get(part, species.outside)
    if scenario == "biological":
        look = withered_appearance(species)
    return SpeciesTopic(key, species, part, look, about.parts[kind][part], about)


def nameable_species(scenario: str) -> list[tuple[str, int]]:
    """Return (kind, number) of the known species whose names a scenario asks; none in
    Incomplete, Biological and Others.
    """
    about = SCENARIOS[scenario]
    return list(product(about.parts, range(KNOWN_PER_KIND))) if about.asks_name else []


@cache
def named_species() -> tuple[Species, ...]:
    """Return the known species, `KNOWN_PER_KIND` of each kind."""
    every = product(KINDS, range(KNOWN_PER_KIND))
    return tuple(numbered_species(KNOWN_WORLD, kind, number) for kind, number in every)


def outside_in_words(species: Species) -> str:
    """Return "a moth; its forewings are red, banded with white"."""
    part, look = KINDS[species.kind].outside, species.outside
    verb = "are" if part.endswith("s") else "is"
    return f"a {species.kind}; its {part} {verb} {look.color}, {look.pattern_words}"
