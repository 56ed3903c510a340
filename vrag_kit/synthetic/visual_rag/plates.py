"""The guide's species in another drawing style: outlined and coloured like the plates
of a printed book (standing for the images of iNaturalist 2024).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from vrag_kit.synthetic.visual_rag.pages import (
    EDITIONS,
    SpeciesSlot,
    draw_images,
    random_file_name,
    species_slots,
)
from vrag_kit.synthetic.visual_rag.questions import hidden_parts
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species, plan_photos
from vrag_kit.synthetic.world.shapes import darker, lighter
from vrag_kit.synthetic.world.traits import Species, stream
from vrag_kit.synthetic.world.views import SCENES, View, compose_view

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
            pen.polygon(
                [(0, y), (side, y + slope), (side, y + slope + height), (0, y + height)],
                fill=lighter(color, float(rng.uniform(0.35, 0.7))),
            )
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
    lineage = (*KINDS[slot.kind].lineage, species.genus, species.epithet)
    target = images / "_".join([f"{slot.place + 5000:05d}", *lineage])
    asked = tuple(part.name for part in hidden_parts(species))
    fewest, most = PLATES[edition]
    n_plates = int(rng.integers(fewest, most + 1))
    photos = {random_file_name(rng): each for each in plan_photos(species, asked, n_plates, name)}
    draw_images(target, photos, partial(draw_plate, species, size=size))
