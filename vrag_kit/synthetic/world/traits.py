"""What an invented species looks like: its colours, its patterns, and the names that
follow from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.random import PCG64, Generator

from vrag_kit.synthetic.world.shapes import Color, Points, Shape, darker, ellipse, shrink_toward

T = TypeVar("T")


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, which white space separates."""
    return tuple(text.split())


_COLORS: dict[str, tuple[Color, str, str]] = {
    "red": ((196, 40, 38), "Scarlet", "R"),
    "orange": ((236, 132, 28), "Amber", "O"),
    "yellow": ((243, 211, 56), "Saffron", "Y"),
    "green": ((74, 145, 62), "Mossy", "G"),
    "blue": ((48, 98, 190), "Azure", "B"),
    "purple": ((124, 62, 156), "Plum", "P"),
    "pink": ((236, 142, 172), "Rosy", "K"),
    "white": ((242, 240, 232), "Pale", "W"),
    "black": ((34, 32, 36), "Sable", "C"),
    "brown": ((122, 80, 46), "Russet", "D"),
    "gray": ((140, 142, 144), "Ashen", "A"),
}
COLORS = {name: shade for name, (shade, _, _) in _COLORS.items()}
"""Name → sRGB."""
COLOR_WORDS = {name: word for name, (_, word, _) in _COLORS.items()}
"""Name → its word in a species' common name."""
COLOR_CODES = {name: code for name, (_, _, code) in _COLORS.items()}
"""Name → the letter on a chip: A ash gray, C coal black, D dun brown, K pink."""
SPELLINGS: dict[str, tuple[str, ...]] = {  # accepted answers, best first
    "purple": ("purple", "violet"),
    "gray": ("gray", "grey"),
    "white": ("white", "cream"),
    "banded": ("banded", "bands", "striped", "stripes"),
    "spotted": ("spotted", "spots", "dots"),
    "bordered": ("bordered", "border", "dark margin", "edged"),
    "plain": ("plain", "no pattern", "uniform"),
}
PATTERNS = ("plain", "spotted", "banded", "bordered")
PATTERN_WORDS = {"plain": "", "spotted": "Freckled ", "banded": "Girdled ", "bordered": "Hemmed "}
_PLACES = words("""
    Fen Heath Lantern Willow Marsh Tansy Hollow Ridge Dune Harbor Orchard Cinder Juniper
    Quarry Brook Saltmarsh Thistle Meadow Canyon Alder Ember Frost Sedge Copper
""")
_SYLLABLES = words("ta ve lo ri na pe mo su ka li do fe ra nu vi sa cor mel tan bri")
_GENUS_ENDS = ("lia", "rus", "mys", "thea", "ssa", "nia", "pora", "dus", "stes", "phora")
_EPITHET_ENDS = ("ensis", "ata", "ella", "osa", "ula", "ina", "aria", "ica", "ifera", "oides")


@dataclass(frozen=True, slots=True)
class Appearance:
    """Colour and pattern of one part."""

    color: str  # a key of COLORS: the ground colour
    pattern: str  # one of PATTERNS
    second: str  # a key of COLORS: the colour of the pattern, different from `color`

    @property
    def pattern_words(self) -> str:
        """ "plain" or "banded with white"."""
        return self.pattern if self.pattern == "plain" else f"{self.pattern} with {self.second}"


@dataclass(frozen=True, slots=True)
class Species:
    """One invented species; everything in it is drawn from a named random stream."""

    kind: str  # a key of organisms.KINDS
    genus: str
    epithet: str
    common_name: str  # tells the visible colour and pattern, as common names do
    outside: Appearance  # what every view shows
    hidden: dict[str, Appearance]  # part → what only rare views show; independent of `outside`
    build: tuple[float, float]  # two body proportions, each in [0, 1]

    @property
    def coat(self) -> Color:
        """Its main outer color."""
        return COLORS[self.outside.color]

    @property
    def scientific_name(self) -> str:
        """Genus and epithet."""
        return f"{self.genus} {self.epithet}"


def stream(*names: object) -> Generator:
    """A random generator named by words: the same words give the same numbers, and no
    other words do.
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return Generator(PCG64(int.from_bytes(digest[:16], "little")))


def choose(options: Sequence[T], rng: Generator) -> T:
    """Draw one of the options, each equally likely."""
    return options[int(rng.integers(len(options)))]


def shuffled(items: Sequence[T], rng: Generator) -> list[T]:
    """Return the items in a random order."""
    return [items[place] for place in rng.permutation(len(items))]


def generate_species_traits(
    kind: str, noun: str, parts: tuple[str, ...], rng: Generator
) -> Species:
    """Invent a species of `kind` whose `parts` are hidden in most views."""
    outside = random_appearance(rng)
    first, last = rng.choice(_PLACES, size=2, replace=False)
    look = f"{PATTERN_WORDS[outside.pattern]}{COLOR_WORDS[outside.color]}"
    return Species(
        kind=kind,
        genus=_word(rng, _GENUS_ENDS).capitalize(),
        epithet=_word(rng, _EPITHET_ENDS),
        common_name=f"{look} {first}{last.lower()} {noun}",
        outside=outside,
        hidden={part: random_appearance(rng) for part in parts},
        build=(rng.random(), rng.random()),
    )


def random_appearance(rng: Generator) -> Appearance:
    """Draw two different colors and a pattern, each equally likely."""
    color, second = rng.choice(list(COLORS), size=2, replace=False)
    return Appearance(str(color), choose(PATTERNS, rng), str(second))


def _word(rng: Generator, endings: tuple[str, ...]) -> str:
    syllables = rng.choice(_SYLLABLES, size=rng.integers(2, 4))
    return "".join(syllables) + choose(endings, rng)


def accepted_spellings(value: str) -> tuple[str, ...]:
    """Accepted answers for a colour or pattern name, best first."""
    return SPELLINGS.get(value, (value,))


def draw_part(
    species: Species, part: str, outline: Points, anchor: tuple[float, float]
) -> Iterator[Shape]:
    """Fill an outline that is star-shaped about `anchor` with the look of a hidden part; with
    `part` "" that of the outside.
    """
    look = species.hidden[part] if part else species.outside
    ground = COLORS[look.color]
    second = COLORS[look.second]
    has_border = look.pattern == "bordered"
    yield Shape(outline, second if has_border else darker(ground, 0.7), part)
    layers = [(0.76 if has_border else 0.96, ground)]
    if look.pattern == "banded":
        layers += [(0.86, second), (0.70, ground), (0.52, second), (0.34, ground)]
    for share, color in layers:
        yield Shape(shrink_toward(outline, anchor, share), color, part)
    if look.pattern == "spotted":
        for spot in _spots(outline, anchor):
            yield Shape(spot, second, part)


def _spots(outline: Points, anchor: tuple[float, float]) -> Iterator[Points]:
    """Circles between the outline and the anchor, in turn further out and in."""
    arms = outline - anchor
    size = 0.095 * np.linalg.norm(arms, axis=1).max()
    for turn, arm in enumerate(arms[:: max(1, len(arms) // 9)]):
        x, y = np.asarray(anchor) + (0.74, 0.46)[turn % 2] * arm
        yield ellipse(x, y, size, size, n=10)
