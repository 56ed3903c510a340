"""What an invented species looks like: its colours, its patterns, and the names that
follow from them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from vrag_kit.synthetic.world.shapes import Color, Points, Shape, darker, ellipse, shrink_toward


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
    def scientific_name(self) -> str:
        """Genus and epithet."""
        return f"{self.genus} {self.epithet}"


def stream(*names: object) -> np.random.Generator:
    """A random generator named by words: the same words give the same numbers, and no
    other words do.
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def generate_species_traits(
    kind: str, noun: str, parts: tuple[str, ...], rng: np.random.Generator
) -> Species:
    """Invent a species of `kind` whose `parts` are hidden in most views."""
    outside = random_appearance(rng)
    first, last = (str(word) for word in rng.choice(_PLACES, size=2, replace=False))
    look = f"{PATTERN_WORDS[outside.pattern]}{COLOR_WORDS[outside.color]}"
    common_name = f"{look} {first}{last.lower()} {noun}"
    genus = _word(rng, _GENUS_ENDS).capitalize()
    epithet = _word(rng, _EPITHET_ENDS)
    hidden = {part: random_appearance(rng) for part in parts}
    build = (float(rng.random()), float(rng.random()))
    return Species(kind, genus, epithet, common_name, outside, hidden, build)


def random_appearance(rng: np.random.Generator) -> Appearance:
    """Draw two different colors and a pattern, each equally likely."""
    color, second = rng.choice(list(COLORS), size=2, replace=False)
    return Appearance(str(color), str(rng.choice(PATTERNS)), str(second))


def _word(rng: np.random.Generator, endings: tuple[str, ...]) -> str:
    return "".join(rng.choice(_SYLLABLES, size=rng.integers(2, 4))) + str(rng.choice(endings))


def accepted_spellings(value: str) -> tuple[str, ...]:
    """Accepted answers for a colour or pattern name, best first."""
    return SPELLINGS.get(value, (value,))


def draw_pattern(
    outline: Points, look: Appearance, part: str, anchor: tuple[float, float]
) -> list[Shape]:
    """Fill an outline that is star-shaped about `anchor` with the colour and pattern of
    `look`.
    """
    ground, second = COLORS[look.color], COLORS[look.second]
    rim = darker(ground, 0.7)
    body = [Shape(outline, rim, part), Shape(shrink_toward(outline, anchor, 0.96), ground, part)]
    if look.pattern == "bordered":
        body = [
            Shape(outline, second, part),
            Shape(shrink_toward(outline, anchor, 0.76), ground, part),
        ]
    if look.pattern == "banded":
        for share, color in ((0.86, second), (0.70, ground), (0.52, second), (0.34, ground)):
            body.append(Shape(shrink_toward(outline, anchor, share), color, part))
    if look.pattern == "spotted":
        reach = np.linalg.norm(outline - np.asarray(anchor), axis=1)
        size = 0.095 * float(reach.max())
        step = max(1, len(outline) // 9)
        for turn, point in enumerate(outline[::step]):
            share = (0.74, 0.46)[turn % 2]
            x, y = np.asarray(anchor) + share * (point - np.asarray(anchor))
            body.append(Shape(ellipse(float(x), float(y), size, size, n=10), second, part))
    return body
