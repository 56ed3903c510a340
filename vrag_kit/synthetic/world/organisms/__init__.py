"""The kinds of organism in the guide: how each is classified, drawn, and asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vrag_kit.synthetic.world.organisms import bodies
from vrag_kit.synthetic.world.shapes import Shape
from vrag_kit.synthetic.world.traits import Species


@dataclass(frozen=True, slots=True)
class HiddenPart:
    """A body part that only one rare pose shows."""

    name: str  # "hindwings": appears in questions and in the part map
    pose: str  # the pose that shows it
    hint: str  # the relative clause that ends a question: why one rarely sees it

    @property
    def plural(self) -> bool:
        """Whether its name is a plural, by its last letter."""
        return self.name.endswith("s")

    @property
    def be(self) -> str:
        """The verb behind its name."""
        return "are" if self.plural else "is"


@dataclass(frozen=True, slots=True)
class OrganismKind:
    """One kind of organism."""

    name: str  # "moth"
    noun: str  # last word of its common names
    lineage: tuple[str, ...]  # kingdom, phylum, class, order, family: as its folders begin
    scene: str  # a key of photographs.SCENES: where it lives
    outside: str  # what one calls the part that every usual view shows
    resting: tuple[str, ...]  # poses that show no hidden part; the last shows the outside best
    hidden: tuple[HiddenPart, ...]  # two
    turn: float  # largest rotation in a view, radians
    draw: Callable[[Species, str, float], Iterator[Shape]]
    """(species, pose, openness in [0, 1]) → shapes from back to front, spanning about 1
    around (0, 0).
    """
    young: Callable[[Species], Iterator[Shape]]
    """The same of a young one."""

    @property
    def outside_pose(self) -> str:
        """The pose that shows the outside best."""
        return self.resting[-1]


_HIDDEN = """
moth: hindwings: spread: which are usually covered by the forewings
moth: undersides of the wings: upright: which show only when the wings are closed over the back
bird: inside of the bill: gaping: which shows only when the bill is wide open
bird: undersides of the wings: wings raised: which are hidden while the wings are folded
flower: stamen tips: facing: which are enclosed by the petals until the flower opens
flower: undersides of the leaves: windblown: which show only when the wind turns the leaves
mushroom: gills: from below: which are hidden beneath the cap
mushroom: flesh: cut: which shows only when the cap is cut open
fish: dorsal fin: fin raised: which is folded down most of the time
fish: inside of the mouth: mouth open: which shows only when the mouth is wide open
lizard: throat fan: display: which is folded away except in display
lizard: belly: below: which can be seen only from below
"""
"""Kind, and its hidden parts: name, pose and hint."""


def _hidden(kind: str) -> tuple[HiddenPart, ...]:
    rows = [line.split(": ") for line in _HIDDEN.strip().splitlines()]
    return tuple(HiddenPart(*cells) for owner, *cells in rows if owner == kind)


_MOTH = OrganismKind(
    name="moth",
    noun="Moth",
    lineage=("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Lanternidae"),
    scene="foliage",
    outside="forewings",
    resting=("rest",),
    hidden=_hidden("moth"),
    turn=np.pi,
    draw=bodies.draw_moth,
    young=bodies.caterpillar,
)
_BIRD = OrganismKind(
    name="bird",
    noun="Warbler",
    lineage=("Animalia", "Chordata", "Aves", "Passeriformes", "Fenlarkidae"),
    scene="sky",
    outside="folded wings",
    resting=("perched",),
    hidden=_hidden("bird"),
    turn=0.35,
    draw=bodies.draw_bird,
    young=bodies.chick,
)
_FLOWER = OrganismKind(
    name="flower",
    noun="Bellflower",
    lineage=("Plantae", "Tracheophyta", "Magnoliopsida", "Asterales", "Lanternaceae"),
    scene="meadow",
    outside="petals",
    resting=("side",),
    hidden=_hidden("flower"),
    turn=0.5,
    draw=bodies.draw_flower,
    young=bodies.bud,
)
_MUSHROOM = OrganismKind(
    name="mushroom",
    noun="Bonnet",
    lineage=("Fungi", "Basidiomycota", "Agaricomycetes", "Agaricales", "Emberellaceae"),
    scene="forest",
    outside="cap",
    resting=("side",),
    hidden=_hidden("mushroom"),
    turn=0.4,
    draw=bodies.draw_mushroom,
    young=bodies.button,
)
_FISH = OrganismKind(
    name="fish",
    noun="Wrasse",
    lineage=("Animalia", "Chordata", "Actinopterygii", "Perciformes", "Brooklinidae"),
    scene="water",
    outside="flanks",
    resting=("side",),
    hidden=_hidden("fish"),
    turn=0.5,
    draw=bodies.draw_fish,
    young=bodies.fry,
)
_LIZARD = OrganismKind(
    name="lizard",
    noun="Anole",
    lineage=("Animalia", "Chordata", "Reptilia", "Squamata", "Cinderidae"),
    scene="rock",
    outside="back",
    resting=("side", "above"),
    hidden=_hidden("lizard"),
    turn=np.pi / 4,
    draw=bodies.draw_lizard,
    young=bodies.hatchling,
)
_KINDS = (_MOTH, _BIRD, _FLOWER, _MUSHROOM, _FISH, _LIZARD)
KINDS = {kind.name: kind for kind in _KINDS}


def hidden_parts(species: Species) -> tuple[HiddenPart, ...]:
    """Return the two hidden parts of a species."""
    return KINDS[species.kind].hidden


def hidden_part(species: Species, name: str) -> HiddenPart | None:
    """Return the hidden part of that name; None for any other, which is the outside."""
    return next((part for part in hidden_parts(species) if part.name == name), None)
