"""Questions about what is hidden, in the manner of the Visual-RAG paper, and their
accepted answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from vrag_kit.fieldguide.organisms import KINDS, HiddenPart
from vrag_kit.fieldguide.traits import Species, spellings

ASKS = ("color", "pattern", "colors")


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one hidden part of one species."""

    part: str
    asks: str  # one of ASKS
    text: str
    answers: tuple[str, ...]  # any one is right; never empty


def ask(species: Species, part: HiddenPart, asks: str) -> Question:
    """The question about `part` that asks for its (main) color, its pattern, or both
    its colors.

    The main color of a patterned part is its ground, which fills more than half of it.
    """
    look = species.hidden[part.name]
    who = f"{species.common_name} (scientific name: {species.scientific_name})"
    verb, do = ("are", "do") if part.plural else ("is", "does")
    if asks == "color":
        start = f"What color {verb}" if look.pattern == "plain" else "What is the main color of"
        return Question(
            part.name,
            asks,
            f"{start} the {part.name} of {who}, {part.hint}?",
            spellings(look.color),
        )
    if asks == "pattern":
        return Question(
            part.name,
            asks,
            f"What pattern {do} the {part.name} of {who} show, {part.hint}?",
            spellings(look.pattern),
        )
    pairs = [
        f"{a} and {b}"
        for first, second in ((look.color, look.second), (look.second, look.color))
        for a in spellings(first)
        for b in spellings(second)
    ]
    return Question(
        part.name,
        asks,
        f"Which two colors appear on the {part.name} of {who}, {part.hint}?",
        tuple(pairs),
    )


def askable(species: Species, part: HiddenPart) -> tuple[str, ...]:
    """What can be asked about a part: a plain part has one color and so no second one."""
    return ("color", "pattern") if species.hidden[part.name].pattern == "plain" else ASKS


def hidden_parts(species: Species) -> tuple[HiddenPart, HiddenPart]:
    """The two hidden parts of a species."""
    return KINDS[species.kind].hidden
