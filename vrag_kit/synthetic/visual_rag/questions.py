"""Questions about what is hidden, in the manner of the Visual-RAG paper, and their
accepted answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from vrag_kit.synthetic.world.organisms import HiddenPart
from vrag_kit.synthetic.world.traits import Species, accepted_spellings

ASKS = ("color", "pattern", "colors")


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one hidden part of one species."""

    part: str
    asks: str  # one of ASKS
    text: str
    answers: tuple[str, ...]  # any one is right; never empty


def make_question(species: Species, part: HiddenPart, asks: str) -> Question:
    """The question about `part` that asks for its (main) color, its pattern, or both
    its colors.

    The main color of a patterned part is its ground, which fills more than half of it.
    """
    look = species.hidden[part.name]
    who = f"{species.common_name} (scientific name: {species.scientific_name})"
    verb, do = ("are", "do") if part.plural else ("is", "does")
    if asks == "color":
        start = f"What color {verb}" if look.pattern == "plain" else "What is the main color of"
        text = f"{start} the {part.name} of {who}, {part.hint}?"
        return Question(part.name, asks, text, accepted_spellings(look.color))
    if asks == "pattern":
        text = f"What pattern {do} the {part.name} of {who} show, {part.hint}?"
        return Question(part.name, asks, text, accepted_spellings(look.pattern))
    text = f"Which two colors appear on the {part.name} of {who}, {part.hint}?"
    pairs = (*_pairs(look.color, look.second), *_pairs(look.second, look.color))
    return Question(part.name, asks, text, pairs)


def _pairs(first: str, second: str) -> list[str]:
    """Every way to say two colours in this order."""
    both = product(accepted_spellings(first), accepted_spellings(second))
    return [f"{one} and {other}" for one, other in both]


def askable_traits(species: Species, part: HiddenPart) -> tuple[str, ...]:
    """What can be asked about a part: a plain part has one color and so no second one."""
    return ("color", "pattern") if species.hidden[part.name].pattern == "plain" else ASKS
