"""What a drawn question is about: an organism, a tray or a region, the words that are
asked of it, and the two sorts of pictures, the one that hides the answer and the ones
that show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from PIL import Image

from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, Appearance, Species

OUTSIDE = {
    "moth": "forewings",
    "bird": "folded wings",
    "flower": "petals",
    "mushroom": "cap",
    "fish": "flanks",
    "lizard": "back",
}
"""Kind → what one calls the part that every usual view shows."""
KNOWN_WORLD = "named-species"
KNOWN_PER_KIND = 8
"""Species of each kind whose names an answerer is told: numbers 0 to 7 of the world
`KNOWN_WORLD`. All other species are new to it.
"""


@dataclass(frozen=True, slots=True)
class TopicQuestion:
    """One question that can be asked about a topic."""

    asks: str  # "color", "pattern", "name", "chip" or "region"
    text: str
    answer: str
    others: tuple[str, ...]  # wrong answers of the same sort and spelling, three or more


class Topic(Protocol):
    """One thing to ask about, with pictures without end; the same name gives the same
    picture.
    """

    @property
    def key(self) -> str:
        """Tells topics apart, as names of random streams do."""

    @property
    def what(self) -> str:
        """The sort of thing: "Moth", "Tray"."""

    def questions(self) -> tuple[TopicQuestion, ...]:
        """The questions that its examples answer."""

    def query_image(self, name: str, size: int) -> Image.Image:
        """A picture that hides the answer, RGB, size × size pixels."""

    def example_image(self, name: str, size: int) -> Image.Image:
        """A picture that shows the answer, RGB, size × size pixels."""


Painter = Callable[[Species, str, str, int], Image.Image]
"""(species, part, name of the picture, side in pixels) → the picture."""


@dataclass(frozen=True, slots=True)
class QuestionTemplates:
    """The questions of a scenario; {part} and {noun} are filled in."""

    color: str = "What is the main color of the {part} of this {noun}?"
    pattern: str = "What pattern is on the {part} of this {noun}?"
    name: str = "Which species is this {noun}?"


@dataclass(frozen=True, slots=True)
class SpeciesTopic:
    """A species and the part of it that the query hides."""

    key: str
    species: Species
    part: str
    look: Appearance  # of the part, as the examples show it
    asks: tuple[str, ...]  # "color" and "pattern" of the part, one of them, or "name"
    templates: QuestionTemplates
    hide: Painter
    show: Painter

    @property
    def what(self) -> str:
        """The kind, as a title."""
        return self.species.kind.capitalize()

    def questions(self) -> tuple[TopicQuestion, ...]:
        """The name; or colour and pattern of the part, of which only some are hidden."""
        return tuple(self._ask(asks) for asks in self.asks)

    def _ask(self, asks: str) -> TopicQuestion:
        words = {"part": self.part, "noun": self.species.kind}
        if asks == "name":
            text = self.templates.name.format(**words)
            return TopicQuestion(asks, text, self.species.scientific_name, _namesakes(self.species))
        if asks == "pattern":
            designs = tuple(each for each in PATTERNS if each != self.look.pattern)
            return TopicQuestion(
                asks, self.templates.pattern.format(**words), self.look.pattern, designs
            )
        hues = tuple(each for each in COLORS if each not in (self.look.color, self.look.second))
        return TopicQuestion(asks, self.templates.color.format(**words), self.look.color, hues)

    def query_image(self, name: str, size: int) -> Image.Image:
        """A picture that hides the part."""
        return self.hide(self.species, self.part, name, size)

    def example_image(self, name: str, size: int) -> Image.Image:
        """A picture that shows the part."""
        return self.show(self.species, self.part, name, size)


@cache
def named_species() -> tuple[Species, ...]:
    """The species whose names answerers are told, `KNOWN_PER_KIND` of each kind."""
    known: list[Species] = []
    for kind in KINDS:
        known += [numbered_species(KNOWN_WORLD, kind, number) for number in range(KNOWN_PER_KIND)]
    return tuple(known)


def training_names() -> list[tuple[str, str]]:
    """(scientific name, its look in words) of every known species: what lessons tell."""
    told = []
    for species in named_species():
        look = species.outside
        pattern = "plain" if look.pattern == "plain" else f"{look.pattern} with {look.second}"
        part = OUTSIDE[species.kind]
        words = f"a {species.kind}; its {part} {_verb(part)} {look.color}, {pattern}"
        told.append((species.scientific_name, words))
    return told


def _verb(part: str) -> str:
    return "are" if part.endswith("s") else "is"


def _namesakes(species: Species) -> tuple[str, ...]:
    """Names of the known species of the kind that look otherwise from outside."""
    return tuple(
        other.scientific_name
        for other in named_species()
        if other.kind == species.kind and other.outside.color != species.outside.color
    )
