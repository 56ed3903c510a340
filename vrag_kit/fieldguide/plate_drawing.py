"""Draws the second corpus: which species have plates, and the plates of one of them."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import NamedTuple

from vrag_kit.fieldguide.album import album, invent_named
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.pages import EDITIONS, slots
from vrag_kit.fieldguide.plates import plate
from vrag_kit.fieldguide.questions import hidden_parts
from vrag_kit.fieldguide.traits import stream

PLATES = {"full": (100, 140), "small": (26, 34)}
"""Fewest and most plates of a species, by edition."""
MISSING = 1 / 6
"""Share of the species without plates."""


class Slot(NamedTuple):
    """The place of a species in the guide."""

    place: int  # its index
    kind: str
    number: int  # among those of its kind


def every_slot(edition: str) -> list[Slot]:
    """The species of the guide."""
    return [Slot(index, *slot) for index, slot in enumerate(slots(EDITIONS[edition]))]


def with_plates(edition: str) -> list[Slot]:
    """The species that have plates."""
    seed = EDITIONS[edition].seed
    return [slot for slot in every_slot(edition) if stream(seed, "24", *slot).random() >= MISSING]


def draw_plates(edition: str, images: Path, slot: Slot) -> None:
    """Draw the plates of one species below `images` unless they are there."""
    size, seed = EDITIONS[edition].size, EDITIONS[edition].seed
    name = f"{seed}/24/{slot.kind}/{slot.number}"
    species = invent_named(seed, slot.kind, slot.number)
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
    for photo in album(species, asked, n_plates, name):
        picture = plate(species, photo.view, size)
        file = part / f"{uuid.UUID(bytes=rng.bytes(16), version=4)}.jpg"
        picture.save(file, quality=88, subsampling=0)
    part.rename(target)
