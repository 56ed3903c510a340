"""The pages of a guide before anything is drawn: which species, which questions, which photographs;
and the species in another drawing style: outlined and coloured like the plates of a printed book
(standing for the images of iNaturalist 2024).
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

from vrag_kit.synthetic.visual_rag.questions import Question, askable_traits, make_question
from vrag_kit.synthetic.world.organisms import KINDS, hidden_parts
from vrag_kit.synthetic.world.photographs import (
    Photo,
    View,
    compose_view,
    draw_photograph,
    encode_jpeg,
    numbered_species,
    palette,
    plan_photos,
)
from vrag_kit.synthetic.world.shapes import (
    Color,
    darker,
    in_pixels,
    lighter,
    paint,
    to_image,
)
from vrag_kit.synthetic.world.traits import Species, choose, stream
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
    asked = parts if rng.random() < 0.6 else (choose(parts, rng),)
    questions = []
    for part in asked:
        options = askable_traits(species, part)
        weights = np.array([0.55, 0.25, 0.2][: len(options)])
        chosen = str(rng.choice(options, p=weights / sum(weights)))
        questions.append(make_question(species, part, chosen))
    n_photos = int(rng.integers(*edition.photos, endpoint=True))
    photos = plan_photos(species, tuple(part.name for part in asked), n_photos, name)
    files = tuple(random_file_name(rng) for _ in photos)
    folder = species_folder(slot.place, species)
    return SpeciesPlan(folder, species, tuple(questions), tuple(photos), files)


def species_folder(number: int, species: Species) -> str:
    """Return the name of a folder as iNaturalist has it."""
    lineage = KINDS[species.kind].lineage
    return "_".join([f"{number:05d}", *lineage, species.genus, species.epithet])


def annotation_rows(page: SpeciesPlan) -> Iterator[Json]:
    """The page's questions as rows of the annotation file, version 2."""
    for question in page.questions:
        labels = {
            f"{page.folder}/{name}": int(question.part in photo.shown)
            for photo, name in zip(page.photos, page.files, strict=True)
        }
        count = sum(labels.values())
        yield {
            "question": question.text,
            "answer": list(question.answers),
            "sn": page.species.scientific_name,
            "images": labels,
            "y_rate": count / len(labels),
            "y_count": count,
            "is_changed_v2": "unchanged",
        }


def generate_species(edition: FieldGuideEdition, images: Path, slot: SpeciesSlot) -> list[Json]:
    """Draw one species below `images` unless it is there; returns its annotation rows."""
    page = plan_species(edition, slot)
    draw = partial(draw_photograph, page.species, size=edition.size)
    draw_images(images / page.folder, dict(zip(page.files, page.photos, strict=True)), draw)
    return list(annotation_rows(page))


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


def random_file_name(rng: Generator) -> str:
    """Draw the name of a photograph's file."""
    return f"{uuid.UUID(bytes=rng.bytes(16), version=4)}.jpg"


def draw_plate(species: Species, view: View, size: int) -> Image.Image:
    """Draw a view as a coloured plate, RGB, size × size pixels: paper washed with two
    colours of the scene, ink outlines, no blur and no camera noise.
    """
    fine = 3 if size < 100 else 2
    side = size * fine
    rng = stream(view.name, "plate")
    image = _wash(rng, palette(species), side)
    pen = ImageDraw.Draw(image, "RGBA")
    for shape in compose_view(species, view):
        paint(image, [shape])
        if shape.alpha == 255:
            closed = np.append(shape.points, shape.points[:1], axis=0)
            ink = (*darker(shape.color, 0.45), 255)
            pen.line(in_pixels(closed, side), fill=ink, width=max(1, side // 150))
    grain = rng.standard_normal((size, size, 1)) * 3.0
    pixels = np.asarray(image.reduce(fine), dtype=np.float32) * (0.94, 0.93, 0.88)
    return to_image(pixels + 12 + grain)


def _wash(rng: Generator, colors: tuple[Color, ...], side: int) -> Image.Image:
    """Paper with broad strokes of two pale colors."""
    image = Image.new("RGB", (side, side), (236, 226, 204))
    pen = ImageDraw.Draw(image)
    for color in (colors[0], choose(colors[1:], rng)):
        for _ in range(7):
            height = rng.uniform(0.02, 0.09) * side
            slope = rng.uniform(-0.12, 0.12) * side
            y = rng.uniform(0, 1) * side
            stroke = [(0, y), (side, y + slope), (side, y + slope + height), (0, y + height)]
            pen.polygon(stroke, fill=lighter(color, rng.uniform(0.35, 0.7)))
    return image


PLATES = {"full": (100, 140), "small": (26, 34)}
"""Fewest and most plates of a species, by edition."""
MISSING = 1 / 6
"""Share of the species without plates."""


def slots_with_plates(edition: str) -> list[SpeciesSlot]:
    """The species that have plates."""
    seed, every = EDITIONS[edition].seed, species_slots(EDITIONS[edition])
    return [slot for slot in every if stream(seed, "24", *slot).random() >= MISSING]


def draw_plates(edition: str, images: Path, slot: SpeciesSlot) -> None:
    """Draw the plates of one species below `images` unless they are there."""
    guide = EDITIONS[edition]
    name = f"{guide.seed}/24/{slot.kind}/{slot.number}"
    species = numbered_species(guide.seed, slot.kind, slot.number)
    rng = stream(name, "page")
    n_plates = int(rng.integers(*PLATES[edition], endpoint=True))
    planned = plan_photos(species, tuple(species.hidden), n_plates, name)
    photos = {random_file_name(rng): each for each in planned}
    # numbered otherwise than in the guide, as in iNaturalist 2024
    target = images / species_folder(slot.place + 5000, species)
    draw_images(target, photos, partial(draw_plate, species, size=guide.size))
