"""Specimen trays: a pinned organism between eight colour chips, each marked with the
letter of its colour; the query lacks one chip.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.shapes import (
    Color,
    Shape,
    darker,
    ellipse,
    lighter,
    paint,
    polygon,
    rgb,
    transformed,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, stream

CODES = {
    "red": "R",
    "orange": "O",
    "yellow": "Y",
    "green": "G",
    "blue": "B",
    "purple": "P",
    "pink": "K",
    "white": "W",
    "black": "C",
    "brown": "D",
    "gray": "A",
}
"""Colour → the letter on its chip: A ash gray, C coal black, D dun brown, K pink."""
N_CHIPS = 8


def draw_tray(
    species: Species,
    chips: Sequence[str],
    missing: int | None,
    *,
    key: str,
    name: str,
    size: int,
) -> Image.Image:
    """Draw a specimen of the species between eight chips, keys of `CODES`, the upper row first;
    the place `missing` is empty. The `key` determines the wood, and the `name` the photograph.
    """
    rng, fixed = stream(name, "photo"), stream(key, "wood")
    turn, scale = rng.uniform(-0.1, 0.1), rng.uniform(0.9, 1.0)
    c, s = np.cos(turn), np.sin(turn)
    matrix = scale * np.array([[c, -s], [s, c]])
    offset = rng.uniform(-0.02, 0.02, size=2)
    fine = 3
    image = Image.new("RGB", (size * fine, size * fine), rgb(rng.uniform(60, 120, size=3)))
    wood = rgb(fixed.uniform((120, 84, 52), (196, 150, 104)))
    shapes = [*_board(wood), *_specimen(species)]
    for place, color in enumerate(chips):
        shapes += _chip(_centre(place), None if place == missing else COLORS[color], wood)
    paint(image, transformed(shapes, matrix, offset.tolist()))
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(size=size * fine * 0.085 * scale)
    for place, color in enumerate(chips):
        if place == missing:
            continue
        x, y = (_centre(place) @ matrix.T + offset + 0.5) * size * fine
        dark = sum(COLORS[color]) < 330
        pen.text((x, y), CODES[color], (248, 248, 240) if dark else (20, 20, 20), font, anchor="mm")
    light = rng.uniform(0.85, 1.15)
    pixels = np.asarray(image.reduce(fine), dtype=np.float32) * light
    pixels += rng.standard_normal((size, size, 1)) * rng.uniform(1, 4)
    photo = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return photo.filter(ImageFilter.GaussianBlur(0.3))


def _centre(place: int) -> np.ndarray:
    column, row = place % 4, place // 4
    return np.array([-0.33 + 0.22 * column, -0.33 + 0.66 * row])


def _square(centre: np.ndarray, half: float) -> np.ndarray:
    return centre + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])


def _board(wood: Color) -> list[Shape]:
    middle = np.zeros(2)
    return [
        Shape(_square(middle, 0.485), darker(wood, 0.6)),
        Shape(_square(middle, 0.455), wood),
        Shape(polygon("-0.44 -0.2, 0.44 -0.2, 0.44 0.2, -0.44 0.2"), (238, 232, 216)),
    ]


def _specimen(species: Species) -> list[Shape]:
    kind = KINDS[species.kind]
    drawn = kind.draw(species, kind.outside_pose, 0.0)
    upright = transformed(drawn, 0.36 * np.eye(2), (0.0, 0.0))
    return [*upright, Shape(ellipse(0, 0, 0.014, 0.014, n=10), (210, 40, 40))]


def _chip(centre: np.ndarray, color: Color | None, wood: Color) -> list[Shape]:
    """A chip in its place; None: the empty place, a dark hole."""
    hole = Shape(_square(centre, 0.095), darker(wood, 0.45))
    if color is None:
        return [hole, Shape(_square(centre + 0.012, 0.083), darker(wood, 0.3))]
    return [
        hole,
        Shape(_square(centre, 0.088), lighter(color, 0.25)),
        Shape(_square(centre + 0.006, 0.08), color),
    ]
