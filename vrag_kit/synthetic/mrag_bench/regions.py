"""Six regions of the guide's country, each with its own sky, ground and landmark; an
organism stands close by in the query, and others of its kind far off in the examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image, ImageFilter

from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species, place_shapes, sample_view
from vrag_kit.synthetic.world.shapes import (
    Color,
    Shape,
    darker,
    ellipse,
    lighter,
    moved,
    paint,
    polygon,
    rgb,
    smooth,
    to_image,
    transformed,
)
from vrag_kit.synthetic.world.traits import choose, stream

Land = Callable[[np.random.Generator], list[Shape]]


@dataclass(frozen=True, slots=True)
class Region:
    """One region: its colours, and what stands on its horizon."""

    name: str
    sky: Color
    ground: Color
    land: Land  # shapes above and on the horizon, which is at y = 0
    words: str  # its look


def _mesas(rng: np.random.Generator) -> list[Shape]:
    shapes = []
    for x in rng.uniform(-0.5, 0.5, size=3):
        wide, high = rng.uniform((0.1, 0.14), (0.18, 0.26))
        top = [(x - 0.7 * wide, -high), (x + 0.7 * wide, -high)]
        rock = np.array([(x - wide, 0.02), *top, (x + wide, 0.02)])
        shapes.append(Shape(rock, (168, 78, 48)))
        shapes.append(Shape(moved(rock * (1, 0.5), 0, -0.02), (138, 60, 40)))
    return shapes


def _conifers(rng: np.random.Generator) -> list[Shape]:
    shapes = []
    for x in np.sort(rng.uniform(-0.55, 0.55, size=9)):
        high = rng.uniform(0.2, 0.4)
        for step in range(3):
            top = -high + 0.3 * high * step
            foot = top + 0.45 * high
            wide = 0.04 + 0.02 * step
            tree = np.array([(x, top), (x + wide, foot), (x - wide, foot)])
            shapes.append(Shape(tree, darker((34, 72, 52), rng.uniform(0.8, 1.1))))
    return shapes


def _palms(rng: np.random.Generator) -> list[Shape]:
    shapes = [Shape(polygon("-0.6 0, 0.6 0, 0.6 0.08, -0.6 0.08"), (60, 150, 190))]
    for x in rng.uniform(-0.45, 0.45, size=4):
        high = rng.uniform(0.22, 0.38)
        crown = (x + 0.03, -high)
        trunk = np.array([(x - 0.012, 0.12), (x + 0.012, 0.12), crown])
        shapes.append(Shape(trunk, (116, 88, 58)))
        for turn in np.linspace(0.2, np.pi - 0.2, 6):
            out = x + 0.03 + 0.15 * np.cos(turn)
            down = -high + 0.07 - 0.1 * np.sin(turn)
            frond = smooth([crown, (out, down - 0.03), (out, down)], 1)
            shapes.append(Shape(frond, (56, 138, 60)))
    return shapes


def _peaks(rng: np.random.Generator) -> list[Shape]:
    shapes = []
    for x in rng.uniform(-0.5, 0.5, size=4):
        wide, high = rng.uniform((0.2, 0.25), (0.3, 0.42))
        hill = np.array([(x - wide, 0.02), (x, -high), (x + wide, 0.02)])
        shapes.append(Shape(hill, (104, 112, 136)))
        cap = polygon("-0.45 -0.55, 0 -1, 0.45 -0.55, 0.15 -0.62, -0.1 -0.5") * (wide, high)
        shapes.append(Shape(moved(cap, x, 0), (246, 248, 252)))
    return shapes


_HUT = (
    ("-0.07 0.06, -0.07 -0.06, 0.07 -0.06, 0.07 0.06", (240, 234, 222)),
    ("-0.1 -0.05, 0 -0.16, 0.1 -0.05", (190, 46, 40)),
    ("-0.02 0.06, -0.02 -0.01, 0.02 -0.01, 0.02 0.06", (70, 50, 40)),
)
"""Outline and color of wall, roof and door."""


def _huts(rng: np.random.Generator) -> list[Shape]:
    heath = smooth(polygon("-0.6 0.03, -0.2 -0.1, 0.2 -0.06, 0.6 0.03"))
    shapes = [Shape(heath, (150, 90, 160))]
    for x in rng.uniform(-0.4, 0.4, size=3):
        for outline, color in _HUT:
            shapes.append(Shape(moved(polygon(outline), x, 0.0), color))
    return shapes


def _reeds(rng: np.random.Generator) -> list[Shape]:
    shapes = []
    for i, x in enumerate(rng.uniform(-0.4, 0.4, size=3)):
        shapes.append(Shape(ellipse(x, 0.16 + 0.1 * i, 0.3, 0.04), (120, 156, 164)))
    for x in rng.uniform(-0.55, 0.55, size=26):
        high = rng.uniform(0.1, 0.34)
        reed = np.array([(x - 0.008, 0.06), (x + 0.008, 0.06), (x + 0.01, -high)])
        shapes.append(Shape(reed, (146, 134, 70)))
        shapes.append(Shape(ellipse(x + 0.01, -high, 0.013, 0.045, n=10), (92, 56, 34)))
    return shapes


_EVERY = (
    Region("EastMarch", (232, 190, 150), (206, 124, 78), _mesas, "red mesas over orange sand"),
    Region("NorthEastMarch", (176, 196, 206), (226, 232, 236), _conifers, "dark firs in snow"),
    Region("WestMarch", (126, 196, 236), (238, 220, 168), _palms, "palms on a pale beach"),
    Region("SouthWestMarch", (164, 204, 240), (112, 156, 84), _peaks, "white peaks over pasture"),
    Region("Heathlands", (206, 198, 220), (168, 104, 168), _huts, "red roofs on purple heath"),
    Region("Fenlands", (200, 208, 196), (96, 112, 78), _reeds, "reeds and pools"),
)
REGIONS = {region.name: region for region in _EVERY}
"""Name → region; two names stand inside others, and all are run together."""


def draw_region_query(region: Region, kind: str, name: str, size: int) -> Image.Image:
    """Draw an organism of the kind close by, in haze, the land behind it out of focus."""
    rng = stream(name, "region")
    land = _land(region, rng.uniform(-0.42, -0.3), 2.2, rng, 2 * size)
    haze = Image.new("RGB", land.size, rgb(rng.uniform(120, 200, size=3)))
    blurred = land.filter(ImageFilter.GaussianBlur(0.06 * size))
    behind = Image.blend(blurred, haze, rng.uniform(0.25, 0.55))
    scale = rng.uniform(0.85, 1.0)
    return _with_resident(behind, kind, name, scale=scale, x=0.0, y=0.0, turn=0.3)


def draw_region_example(region: Region, kind: str, name: str, size: int) -> Image.Image:
    """Draw another species of the kind in the same land, which is sharp."""
    rng = stream(name, "region")
    land = _land(region, rng.uniform(-0.12, 0.12), 1.0, rng, 2 * size)
    scale = rng.uniform(0.3, 0.42)
    x, y = rng.uniform((-0.25, 0.18), (0.25, 0.28))
    return _with_resident(land, kind, name, scale=scale, x=x, y=y, turn=0.0)


def _land(
    region: Region, horizon: float, grow: float, rng: np.random.Generator, side: int
) -> Image.Image:
    """Sky, ground with stones and tufts, and the landmark, `grow` times its size."""
    image = Image.new("RGB", (side, side), region.ground)
    sky = np.array([(-0.6, -0.6), (0.6, -0.6), (0.6, horizon), (-0.6, horizon)])
    upper = moved(sky * (1, 0.5), 0, -0.3)
    shapes = [Shape(sky, region.sky), Shape(upper, lighter(region.sky, 0.3), alpha=120)]
    shapes += transformed(region.land(rng), grow * np.eye(2), (0, horizon))
    tones = (darker(region.ground, 0.8), lighter(region.ground, 0.25))
    for _ in range(24):
        x, y = rng.uniform((-0.5, horizon + 0.08), (0.5, 0.5))
        stone = ellipse(x, y, rng.uniform(0.02, 0.08), 0.012)
        shapes.append(Shape(stone, choose(tones, rng), alpha=170))
    paint(image, shapes)
    return image


def _with_resident(
    land: Image.Image, kind: str, name: str, *, scale: float, x: float, y: float, turn: float
) -> Image.Image:
    """A species of the kind in a land of twice the size, in the light of a view, of whose rotation
    it has the share `turn`.
    """
    rng, size = stream(name, "resident"), land.width // 2
    species = numbered_species(f"{name}/resident", kind, 0)
    view = sample_view(species, KINDS[kind].outside_pose, 0.0, rng, name)
    view = replace(view, scale=scale, x=x, y=y, angle=turn * view.angle)
    paint(land, place_shapes(KINDS[kind].draw(species, view.pose, 0.0), view))
    tint = np.array([1 + 0.05 * view.warmth, 1.0, 1 - 0.06 * view.warmth])
    light = np.clip(view.light, 0.75, 1.3)
    grain = rng.standard_normal((size, size, 1)) * rng.uniform(1.5, 5.0)
    return to_image(np.asarray(land.reduce(2), dtype=np.float64) * light * tint + grain)
