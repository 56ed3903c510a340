"""Bar charts of the drawn suite: which colours observers named for a part, and where a
species was found, with a note that says so in words.
"""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from vrag_kit.synthetic.mrag_suite import page_renderer
from vrag_kit.synthetic.mrag_suite.facts import HOME, Fact
from vrag_kit.synthetic.mrag_suite.species_facts import (
    LOOK,
    MAIN,
    SECOND,
    SpeciesFacts,
    describe_part,
)
from vrag_kit.synthetic.organisms import HiddenPart
from vrag_kit.synthetic.traits import COLORS, stream

_MAIN = (48, 90)
"""Fewest and most observers who named the main colour."""
_SECOND = (18, 40)
_OTHER = (1, 9)


@dataclass(frozen=True, slots=True)
class BarChart:
    """One chart before it is drawn."""

    title: str
    note: str
    axis: str
    bars: tuple[tuple[str, int], ...]
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        """All that stands on it, in the order in which it is read."""
        return "\n".join([self.title, self.note, self.axis, *(f"{x} {n}" for x, n in self.bars)])

    def draw(self) -> Image.Image:
        """480 × 320 pixels, RGB; a bar of a colour has that colour."""
        return page_renderer.bar_chart(self.title, self.note, self.axis, self.bars)


def colors_chart(life: SpeciesFacts, part: HiddenPart, name: str, what: str = LOOK) -> BarChart:
    """How many observers named which colour for a part, the most its main one, and of a
    patterned part then its second; with `what` SECOND for the pattern alone. The same
    `name` gives the same counts.
    """
    rng = stream(name, "colors")
    look = life.species.hidden[part.name]
    true = [(look.color, _MAIN), (look.second, _SECOND)]
    if what == SECOND:
        true = [(look.second, _MAIN)]
    elif what == MAIN or life.is_plain(part):
        true = true[:1]
    free = [color for color in COLORS if color not in (look.color, look.second)]
    others = [(str(color), _OTHER) for color in rng.choice(free, 2, replace=False)]
    bars = [(color, int(rng.integers(*counts))) for color, counts in (*true, *others)]
    note, facts = describe_part(life, part, what)
    axis = "Observers who named the color"
    order = rng.permutation(len(bars))
    return BarChart(life.name_and_latin, note, axis, tuple(bars[i] for i in order), facts)


def habitats_chart(life: SpeciesFacts, name: str) -> BarChart:
    """Where a species was found: tells of no hidden part."""
    rng = stream(name, "homes")
    first, second = life.homes
    bars = ((first, int(rng.integers(20, 60))), (second, int(rng.integers(20, 60))))
    facts = tuple(life.fact(HOME, home) for home in life.homes)
    note = f"It lives in {first} and {second}."
    return BarChart(life.name_and_latin, note, "Specimens found there", bars, facts)
