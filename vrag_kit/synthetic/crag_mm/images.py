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
from vrag_kit.synthetic.world.shapes import Shape, paint, rgb, silhouette
from vrag_kit.synthetic.world.traits import Species, stream

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
        cover = (_finger, _mesh)[int(rng.integers(2))]
        middle = ((box[0] + box[2]) / 2 + left, (box[1] + box[3]) / 2)
        reach = max(box[2] - box[0], box[3] - box[1]) / height
        large = image.resize((2 * height, 2 * height), Image.Resampling.BILINEAR)
        paint(large, cover(np.array(middle) / height - 0.5, reach, rng))
        image = large.reduce(2).filter(ImageFilter.GaussianBlur(0.6))
    if quality == "low light":  # a quarter to two fifths of the light, and coarse grain
        pixels = np.asarray(image, dtype=np.float32) * rng.uniform(0.22, 0.4)
        grain = rng.standard_normal((height, height, 3), dtype=np.float32)
        image = Image.fromarray(np.clip(pixels + 5 * grain, 0, 255).astype(np.uint8))
    return image.crop(frame), box


def reference_image(species: Species, name: str, size: int = 128) -> Image.Image:
    """A photograph as a knowledge graph has it: the organism large, in a usual pose, of
    `size` × `size` pixels.
    """
    return draw_photograph(species, view_showing(species, "", name), size)


def _view(
    species: Species, quality: str, name: str, rng: np.random.Generator, across: float
) -> View:
    """Where the organism stands in a square of the picture's height, of which the
    middle `across` is kept.
    """
    angle = rng.uniform(-UPRIGHT, UPRIGHT)
    if quality == "rotated":
        angle = rng.choice((-1, 1)) * np.radians(rng.uniform(15, 75))
    scale = rng.uniform(0.3, 0.46)
    room = np.array([across, 1.0]) / 2 - scale / 2  # from the middle to either side
    x, y = room * rng.uniform(-1, 1, size=2)
    if abs(x) + abs(y) < 0.12:  # never in the middle
        y += np.copysign(0.14, y)
    if quality == "truncated":
        beyond = scale * rng.uniform(0.42, 0.62)  # of the organism is out of the frame
        side = rng.choice((-1, 1))
        if rng.random() < 0.6:
            x = side * (across / 2 - scale / 2 + beyond)
        else:
            y = side * (0.5 - scale / 2 + beyond)
    blur = rng.uniform(0.011, 0.02) if quality == "blurred" else rng.uniform(0.001, 0.005)
    view = sample_view(species, KINDS[species.kind].outside_pose, 0.0, rng, name)
    placed = replace(view, scale=float(scale), angle=float(angle), x=float(x), y=float(y))
    light = float(np.clip(view.light, 0.75, 1.2))
    return replace(placed, blur=float(blur), light=light, leaf=False, blades=0)


def _finger(at: np.ndarray, reach: float, rng: np.random.Generator) -> list[Shape]:
    """A finger that comes in from the nearer side and ends over the organism."""
    side = -1.0 if at[0] < 0 else 1.0
    foot = np.array([side * 0.5, at[1] + rng.uniform(0.05, 0.3)])
    tip = at + np.array([side * rng.uniform(0.02, 0.14), rng.uniform(-0.08, 0.12)]) * reach
    along = (tip - foot) / np.linalg.norm(tip - foot)
    across = np.array([-along[1], along[0]])
    wide = reach * rng.uniform(0.2, 0.27)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 14)
    end = tip + wide * (np.outer(np.cos(turn), along) + np.outer(np.sin(turn), across))
    base = foot - 0.3 * along
    outline = np.concatenate([[base - 1.15 * wide * across], end, [base + 1.15 * wide * across]])
    skin = _SKIN[int(rng.integers(len(_SKIN)))]
    oval = 0.9 * np.outer(np.cos(2 * turn), along) + 0.7 * np.outer(np.sin(2 * turn), across)
    nail = tip + 0.55 * wide * oval
    return [
        Shape(outline, rgb(0.82 * c for c in skin)),
        Shape(outline - 0.06 * wide * across, skin),
        Shape(nail + 0.35 * wide * along, rgb(min(255.0, 1.12 * c) for c in skin)),
    ]


def _mesh(at: np.ndarray, reach: float, rng: np.random.Generator) -> list[Shape]:
    """Wire netting before the whole picture."""
    wire = _WIRE[int(rng.integers(len(_WIRE)))]
    turn, gap = rng.uniform(0, np.pi / 2), rng.uniform(0.05, 0.075)
    thick = gap * rng.uniform(0.11, 0.17)
    shapes = []
    for angle in (turn, turn + np.pi / 2):
        along = np.array([np.cos(angle), np.sin(angle)])
        across = np.array([-along[1], along[0]])
        for offset in np.arange(-0.75, 0.75, gap):
            middle = at + offset * across
            ends = [middle - 2 * along, middle + 2 * along]
            outline = [ends[0] - thick * across, ends[1] - thick * across]
            outline += [ends[1] + thick * across, ends[0] + thick * across]
            shapes.append(Shape(np.array(outline), wire))
    return shapes
