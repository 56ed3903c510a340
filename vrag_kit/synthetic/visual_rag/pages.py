"""The pages of a guide before anything is drawn: which species, which questions, which
photographs.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from vrag_kit.synthetic.visual_rag.questions import (
    Question,
    askable_traits,
    hidden_parts,
    make_question,
)
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import Photo, numbered_species, plan_photos
from vrag_kit.synthetic.world.traits import Species, stream
from vrag_kit.synthetic.world.views import View, draw_photograph, encode_jpeg
from vrag_kit.types import Json


@dataclass(frozen=True, slots=True)
class FieldGuideEdition:
    """How large a guide is."""

    species_per_kind: int
    photos: tuple[int, int]  # fewest and most photographs of a species, as 200–300 in the paper
    size: int  # side of a photograph, pixels
    seed: str = "field-guide"


EDITIONS = {
    "full": FieldGuideEdition(species_per_kind=8, photos=(200, 300), size=160),
    "small": FieldGuideEdition(species_per_kind=2, photos=(44, 56), size=128, seed="pocket-guide"),
}


@dataclass(frozen=True, slots=True)
class SpeciesPlan:
    """One species of the guide before its photographs are drawn."""

    folder: str
    species: Species
    questions: tuple[Question, ...]
    photos: tuple[Photo, ...]
    files: tuple[str, ...]  # one name a photograph


class SpeciesSlot(NamedTuple):
    """The place of a species in the guide."""

    place: int  # its index
    kind: str
    number: int  # among those of its kind


def species_slots(edition: FieldGuideEdition) -> list[SpeciesSlot]:
    """Return the slot of every species, in the order of their folders."""
    every = product(range(edition.species_per_kind), KINDS)
    return [SpeciesSlot(place, kind, number) for place, (number, kind) in enumerate(every)]


def plan_species(edition: FieldGuideEdition, slot: SpeciesSlot) -> SpeciesPlan:
    """Invent the guide's species of a slot, its questions and its photographs; draws nothing."""
    name = f"{edition.seed}/{slot.kind}/{slot.number}"
    rng = stream(name, "page")
    species = numbered_species(edition.seed, slot.kind, slot.number)
    parts = hidden_parts(species)
    asked = parts if rng.random() < 0.6 else (parts[int(rng.integers(2))],)
    questions = []
    for part in asked:
        options = askable_traits(species, part)
        weights = [0.55, 0.25, 0.2][: len(options)]
        chosen = str(rng.choice(options, p=[w / sum(weights) for w in weights]))
        questions.append(make_question(species, part, chosen))
    n_photos = int(rng.integers(edition.photos[0], edition.photos[1] + 1))
    photos = plan_photos(species, tuple(part.name for part in asked), n_photos, name)
    files = tuple(random_file_name(rng) for _ in photos)
    folder = "_".join(
        [f"{slot.place:05d}", *KINDS[slot.kind].lineage, species.genus, species.epithet]
    )
    return SpeciesPlan(folder, species, tuple(questions), tuple(photos), files)


def annotation_rows(page: SpeciesPlan) -> list[Json]:
    """The page's questions as rows of the annotation file, version 2."""
    rows = []
    for question in page.questions:
        labels = {
            f"{page.folder}/{name}": int(question.part in photo.shown)
            for photo, name in zip(page.photos, page.files, strict=True)
        }
        count = sum(labels.values())
        rows.append(
            {
                "question": question.text,
                "answer": list(question.answers),
                "sn": page.species.scientific_name,
                "images": labels,
                "y_rate": count / len(labels),
                "y_count": count,
                "is_changed_v2": "unchanged",
            }
        )
    return rows


def generate_species(edition: FieldGuideEdition, images: Path, slot: SpeciesSlot) -> str:
    """Draw one species below `images` unless it is there; returns its annotation rows, a
    line of JSON each.
    """
    page = plan_species(edition, slot)
    draw = partial(draw_photograph, page.species, size=edition.size)
    draw_images(images / page.folder, dict(zip(page.files, page.photos, strict=True)), draw)
    return "".join(f"{json.dumps(row)}\n" for row in annotation_rows(page))


def draw_images(
    folder: Path, photos: Mapping[str, Photo], draw: Callable[[View], Image.Image]
) -> None:
    """Draw photographs by the names of their files into a folder, unless it exists."""
    if folder.exists():
        return
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name, photo in photos.items():
        (part / name).write_bytes(encode_jpeg(draw(photo.view)))
    part.rename(folder)


def random_file_name(rng: np.random.Generator) -> str:
    """Draw the name of a photograph's file."""
    return f"{uuid.UUID(bytes=rng.bytes(16), version=4)}.jpg"
