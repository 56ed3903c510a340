"""Pictures as smart glasses take them: portraits in which an organism is small and
off-centre, in one of six qualities; and the usual photographs of a knowledge graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image, ImageFilter

from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import (
    View,
    compose_view,
    draw_photograph,
    sample_view,
    view_showing,
)
from vrag_kit.synthetic.world.shapes import (
    Shape,
    across,
    darker,
    direction,
    paint,
    rgb,
    silhouette,
    to_image,
)
from vrag_kit.synthetic.world.traits import Species, choose, stream

QUALITIES = ("normal", "low light", "blurred", "truncated", "occluded", "rotated")
"""The names that CRAG-MM gives them."""
Box = tuple[int, int, int, int]
"""Left, top, right, lower edge in pixels; what is seen of the organism lies inside."""
UPRIGHT = 0.14
"""Largest rotation of an organism in a picture that is not rotated, radians: under 10°."""
_SKIN = ((226, 178, 148), (198, 144, 110), (150, 100, 72), (104, 68, 48))
_WIRE = ((40, 42, 44), (120, 122, 120), (206, 208, 204))


def egocentric_image(
    species: Species, quality: str, name: str, size: tuple[int, int] = (192, 256)
) -> tuple[Image.Image, Box]:
    """A worn picture of `size` (width, height), which is higher than wide, and the box
    of what it shows of the organism; the same name gives the same picture.
    """
    width, height = size
    left = (height - width) // 2
    frame = (left, 0, left + width, height)
    rng = stream(name, "worn", quality)
    view = _view(species, quality, name, rng, width / height)
    image = draw_photograph(species, view, height)
    box = silhouette(compose_view(species, view), height).crop(frame).getbbox()
    assert box, f"{species.scientific_name}: nothing of it in the frame ({name})"
    if quality == "occluded":
        cover = choose((_finger, _mesh), rng)
        low = np.array(box[:2])
        high = np.array(box[2:])
        middle = (low + high) / 2 + (left, 0)
        large = image.resize((2 * height, 2 * height), Image.Resampling.BILINEAR)
        paint(large, cover(middle / height - 0.5, (high - low).max() / height, rng))
        image = large.reduce(2).filter(ImageFilter.GaussianBlur(0.6))
    if quality == "low light":  # a quarter to two fifths of the light, and coarse grain
        pixels = np.asarray(image, dtype=np.float32) * rng.uniform(0.22, 0.4)
        image = to_image(pixels + 5 * rng.standard_normal(pixels.shape, dtype=np.float32))
    return image.crop(frame), box


def reference_image(species: Species, name: str, size: int = 128) -> Image.Image:
    """A photograph as a knowledge graph has it: the organism large, in a usual pose, of
    `size` × `size` pixels.
    """
    return draw_photograph(species, view_showing(species, "", name), size)


def _view(
    species: Species, quality: str, name: str, rng: np.random.Generator, width: float
) -> View:
    """Where the organism stands in a square of the picture's height, of which the
    middle `width` is kept.
    """
    angle = rng.uniform(-UPRIGHT, UPRIGHT)
    if quality == "rotated":
        angle = rng.choice((-1, 1)) * np.radians(rng.uniform(15, 75))
    scale = rng.uniform(0.3, 0.46)
    room = np.array([width, 1.0]) / 2 - scale / 2  # from the middle to either side
    x, y = room * rng.uniform(-1, 1, size=2)
    if abs(x) + abs(y) < 0.12:  # never in the middle
        y += np.copysign(0.14, y)
    if quality == "truncated":
        beyond = scale * rng.uniform(0.42, 0.62)  # of the organism is out of the frame
        side = rng.choice((-1, 1))
        if rng.random() < 0.6:
            x = side * (width / 2 - scale / 2 + beyond)
        else:
            y = side * (0.5 - scale / 2 + beyond)
    blur = rng.uniform(0.011, 0.02) if quality == "blurred" else rng.uniform(0.001, 0.005)
    view = sample_view(species, KINDS[species.kind].outside_pose, 0.0, rng, name)
    light = float(np.clip(view.light, 0.75, 1.2))
    placed = replace(view, scale=scale, angle=float(angle), x=float(x), y=float(y))
    return replace(placed, blur=blur, light=light, leaf=False, blades=0)


def _finger(at: np.ndarray, reach: float, rng: np.random.Generator) -> list[Shape]:
    """A finger that comes in from the nearer side and ends over the organism."""
    side = -1.0 if at[0] < 0 else 1.0
    foot = np.array([side * 0.5, at[1] + rng.uniform(0.05, 0.3)])
    tip = at + rng.uniform((0.02, -0.08), (0.14, 0.12)) * (side, 1) * reach
    along = (tip - foot) / np.linalg.norm(tip - foot)
    axes = np.array([along, across(along)])
    wide = reach * rng.uniform(0.2, 0.27)
    half = 1.15 * wide * axes[1]
    turn = np.linspace(-np.pi / 2, np.pi / 2, 14)
    end = tip + wide * direction(turn).T @ axes
    base = foot - 0.3 * along
    outline = np.array([base - half, *end, base + half])
    skin = choose(_SKIN, rng)
    nail = tip + 0.55 * wide * (direction(2 * turn).T * (0.9, 0.7)) @ axes
    return [
        Shape(outline, darker(skin, 0.82)),
        Shape(outline - 0.06 * wide * axes[1], skin),
        Shape(nail + 0.35 * wide * along, rgb(min(255.0, 1.12 * c) for c in skin)),
    ]


def _mesh(at: np.ndarray, reach: float, rng: np.random.Generator) -> list[Shape]:
    """Wire netting before the whole picture."""
    wire = choose(_WIRE, rng)
    turn = rng.uniform(0, np.pi / 2)
    gap = rng.uniform(0.05, 0.075)
    thick = gap * rng.uniform(0.11, 0.17)
    shapes = []
    for angle in (turn, turn + np.pi / 2):
        along = direction(angle)
        side = across(along)
        for offset in np.arange(-0.75, 0.75, gap):
            middle = at + offset * side
            start = middle - 2 * along
            end = middle + 2 * along
            half = thick * side
            outline = np.array([start - half, end - half, end + half, start + half])
            shapes.append(Shape(outline, wire))
    return shapes
