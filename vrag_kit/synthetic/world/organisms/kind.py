"""What a kind of organism must say about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vrag_kit.synthetic.world.shapes import Shape
from vrag_kit.synthetic.world.traits import Species


@dataclass(frozen=True, slots=True)
class HiddenPart:
    """A body part that only one rare pose shows."""

    name: str  # "hindwings": appears in questions and in the part map
    pose: str  # the pose that shows it
    plural: bool  # grammar of the questions
    hint: str  # the relative clause that ends a question: why one rarely sees it


@dataclass(frozen=True, slots=True)
class OrganismKind:
    """One kind of organism."""

    name: str  # "moth"
    noun: str  # last word of its common names
    lineage: tuple[str, ...]  # kingdom, phylum, class, order, family: as its folders begin
    scene: str  # a key of views.SCENES: where it lives
    resting: tuple[str, ...]  # poses that show no hidden part
    hidden: tuple[HiddenPart, HiddenPart]
    turn: float  # largest rotation in a view, radians
    draw: Callable[[Species, str, float], list[Shape]]
    """(species, pose, openness in [0, 1]) → shapes from back to front, spanning about 1
    around (0, 0).
    """
