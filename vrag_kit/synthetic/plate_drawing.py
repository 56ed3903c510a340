"""Draws the second corpus: which species have plates, and the plates of one of them."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import NamedTuple

from vrag_kit.synthetic.organisms import KINDS
from vrag_kit.synthetic.pages import EDITIONS, species_slots
from vrag_kit.synthetic.photographs import numbered_species, plan_photos
from vrag_kit.synthetic.plates import draw_plate
from vrag_kit.synthetic.questions import hidden_parts
from vrag_kit.synthetic.traits import stream

PLATES = {"full": (100, 140), "small": (26, 34)}
"""Fewest and most plates of a species, by edition."""
MISSING = 1 / 6
"""Share of the species without plates."""


class SpeciesSlot(NamedTuple):
    """The place of a species in the guide."""

    place: int  # its index
    kind: str
    number: int  # among those of its kind


def guide_slots(edition: str) -> list[SpeciesSlot]:
    """The species of the guide."""
    return [
        SpeciesSlot(index, *slot) for index, slot in enumerate(species_slots(EDITIONS[edition]))
    ]


def slots_with_plates(edition: str) -> list[SpeciesSlot]:
    """The species that have plates."""
    seed = EDITIONS[edition].seed
    return [slot for slot in guide_slots(edition) if stream(seed, "24", *slot).random() >= MISSING]


def draw_plates(edition: str, images: Path, slot: SpeciesSlot) -> None:
    """Draw the plates of one species below `images` unless they are there."""
    size, seed = EDITIONS[edition].size, EDITIONS[edition].seed
    name = f"{seed}/24/{slot.kind}/{slot.number}"
    species = numbered_species(seed, slot.kind, slot.number)
    rng = stream(name, "page")
    # numbered otherwise than in the guide, as in iNaturalist 2024
    lineage = (*KINDS[slot.kind].lineage, species.genus, species.epithet)
    target = images / "_".join([f"{slot.place + 5000:05d}", *lineage])
    if target.exists():
        return
    part = images / f".{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    asked = tuple(part.name for part in hidden_parts(species))
    fewest, most = PLATES[edition]
    n_plates = int(rng.integers(fewest, most + 1))
    for photo in plan_photos(species, asked, n_plates, name):
        picture = draw_plate(species, photo.view, size)
        file = part / f"{uuid.UUID(bytes=rng.bytes(16), version=4)}.jpg"
        picture.save(file, quality=88, subsampling=0)
    part.rename(target)
