"""The pages of a guide before anything is drawn: which species, which questions, which photographs;
and the species in another drawing style: outlined and coloured like the plates of a printed book
(standing for the images of iNaturalist 2024).
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
from PIL import Image, ImageDraw

from vrag_kit.synthetic.visual_rag.questions import Question, askable_traits, make_question
from vrag_kit.synthetic.world.organisms import KINDS, hidden_parts
from vrag_kit.synthetic.world.photographs import (
    SCENES,
    Photo,
    View,
    compose_view,
    draw_photograph,
    encode_jpeg,
    numbered_species,
    plan_photos,
)
from vrag_kit.synthetic.world.shapes import darker, lighter
from vrag_kit.synthetic.world.traits import Species, stream
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
    folder = species_folder(slot.place, species)
    return SpeciesPlan(folder, species, tuple(questions), tuple(photos), files)


def species_folder(number: int, species: Species) -> str:
    """Return the name of a folder as iNaturalist has it."""
    lineage = KINDS[species.kind].lineage
    return "_".join([f"{number:05d}", *lineage, species.genus, species.epithet])


def annotation_rows(page: SpeciesPlan) -> list[Json]:
    """The page's questions as rows of the annotation file, version 2."""
    rows = []
    for question in page.questions:
        labels = {
            f"{page.folder}/{name}": int(question.part in photo.shown)
            for photo, name in zip(page.photos, page.files, strict=True)
        }
        count = sum(labels.values())
        row: Json = {"question": question.text, "answer": list(question.answers)}
        row |= {"sn": page.species.scientific_name, "images": labels}
        row |= {"y_rate": count / len(labels), "y_count": count, "is_changed_v2": "unchanged"}
        rows.append(row)
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


_PAPER = (236, 226, 204)


def draw_plate(species: Species, view: View, size: int) -> Image.Image:
    """Draw a view as a coloured plate, RGB, size × size pixels: paper washed with two
    colours of the scene, ink outlines, no blur and no camera noise.
    """
    fine = 3 if size < 100 else 2
    rng, palette = stream(view.name, "plate"), SCENES[KINDS[species.kind].scene]
    image = _wash(rng, palette, size * fine)
    pen, width = ImageDraw.Draw(image, "RGBA"), max(1, size * fine // 150)
    for shape in compose_view(species, view):
        outline = [tuple(point) for point in (shape.points + 0.5) * size * fine]
        pen.polygon(outline, fill=(*shape.color, shape.alpha))
        if shape.alpha == 255:
            pen.line([*outline, outline[0]], fill=(*darker(shape.color, 0.45), 255), width=width)
    grain = rng.standard_normal((size, size, 1)) * 3.0
    pixels = np.asarray(image.reduce(fine), dtype=np.float32) * (0.94, 0.93, 0.88) + 12 + grain
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _wash(
    rng: np.random.Generator, palette: tuple[tuple[int, int, int], ...], side: int
) -> Image.Image:
    """Paper with broad strokes of two pale colours."""
    image = Image.new("RGB", (side, side), _PAPER)
    pen = ImageDraw.Draw(image)
    for color in (palette[0], palette[int(rng.integers(1, len(palette)))]):
        for _ in range(7):
            height, slope = rng.uniform(0.02, 0.09) * side, rng.uniform(-0.12, 0.12) * side
            y = rng.uniform(0, 1) * side
            stroke = [(0, y), (side, y + slope), (side, y + slope + height), (0, y + height)]
            pen.polygon(stroke, fill=lighter(color, float(rng.uniform(0.35, 0.7))))
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
    size, seed = EDITIONS[edition].size, EDITIONS[edition].seed
    name = f"{seed}/24/{slot.kind}/{slot.number}"
    species = numbered_species(seed, slot.kind, slot.number)
    rng = stream(name, "page")
    # numbered otherwise than in the guide, as in iNaturalist 2024
    target = images / species_folder(slot.place + 5000, species)
    asked = tuple(part.name for part in hidden_parts(species))
    fewest, most = PLATES[edition]
    n_plates = int(rng.integers(fewest, most + 1))
    photos = {random_file_name(rng): each for each in plan_photos(species, asked, n_plates, name)}
    draw_images(target, photos, partial(draw_plate, species, size=size))
