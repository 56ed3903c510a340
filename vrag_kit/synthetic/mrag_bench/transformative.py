"""Pictures that hide something by what happened to the organism: it is young, damaged,
or has not withered yet.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from vrag_kit.synthetic.mrag_bench.painting import (
    draw_over_scene,
    draw_scene,
    hidden_part,
    view_showing,
)
from vrag_kit.synthetic.mrag_bench.young import YOUNG
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.shapes import Points, Shape, part_map, rgb
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, Appearance, Species, stream
from vrag_kit.synthetic.world.views import compose_view, place_shapes, sample_view

_BROWN = (108, 82, 52)


def young(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The young one: caterpillar, chick, bud, button, fry or hatchling."""
    rng = stream(name, "young")
    view = sample_view(species, KINDS[species.kind].resting[0], 0.0, rng, name)
    scale = float(rng.uniform(0.7, 0.9))
    turn = min(KINDS[species.kind].turn, 0.35)
    view = replace(view, scale=scale, x=view.x / 2, y=view.y / 2, blur=0.004)
    view = replace(view, angle=float(rng.uniform(-turn, turn)))
    shapes = place_shapes(YOUNG[species.kind](species), view)
    return draw_over_scene(species, view, shapes, size)


def damaged(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism crumpled and torn; the part is torn away."""
    rng = stream(name, "damaged")
    view = view_showing(species, part, name)
    view = replace(view, scale=max(view.scale, 0.8), x=0.0, y=0.0, leaf=False, blades=0, blur=0.004)
    shapes = [
        replace(shape, points=_crumpled(shape.points, stream(name, "crumple")))
        for shape in compose_view(species, view)
    ]
    picture = draw_over_scene(species, view, shapes, size)
    tear = _tear(shapes, part if hidden_part(species, part) else "", rng, size)
    rim = ImageChops.subtract(tear.filter(ImageFilter.MaxFilter(3)), tear)
    organism = part_map([replace(each, part="organism") for each in shapes], size)[0]
    edge = ImageChops.multiply(rim, organism.point(lambda label: 255 if label else 0))
    picture = Image.composite(draw_scene(species, view, size), picture, tear)
    return Image.composite(Image.new("RGB", (size, size), (52, 36, 28)), picture, edge)


def _crumpled(points: Points, rng: np.random.Generator) -> Points:
    """The outline in a sheet that was crumpled: the same stream, the same creases."""
    moved = points
    for _ in range(3):
        wave, way = rng.normal(0, 9, size=2), rng.normal(0, 0.022, size=2)
        phase = rng.uniform(0, 2 * np.pi)
        moved = moved + np.sin(moved @ wave + phase)[:, None] * way
    return moved


def _tear(shapes: list[Shape], part: str, rng: np.random.Generator, size: int) -> Image.Image:
    """What is torn away, white: the part with a ragged margin, and wedges elsewhere."""
    labels, label_of = part_map(shapes, size)
    mask = Image.new("L", (size, size))
    if part in label_of and part:
        wanted = label_of[part]
        mask = labels.point(lambda label: 255 if label == wanted else 0)
        mask = mask.filter(ImageFilter.MaxFilter(5))
    pen = ImageDraw.Draw(mask)
    points = np.concatenate([shape.points for shape in shapes])
    low, high = points.min(axis=0), points.max(axis=0)
    middle, reach = (low + high) / 2, (high - low) / 2
    for turn in rng.uniform(0, 2 * np.pi, size=4):
        away = np.array([np.cos(turn), np.sin(turn)])
        tip, root = middle + away * reach * 0.45, middle + away * reach * 1.2
        across = np.array([-away[1], away[0]]) * rng.uniform(0.05, 0.1)
        jagged = [
            root + across,
            tip + across * 0.7 + away * 0.05,
            tip,
            tip - across * 0.3 + away * 0.1,
            root - across,
        ]
        pen.polygon(((np.array(jagged) + 0.5) * size).ravel().tolist(), fill=255)
    return mask


def fresh(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism in its prime, in a usual view."""
    rng = stream(name, "fresh")
    view = sample_view(species, "side", 0.0, rng, name)
    view = replace(
        view, scale=max(view.scale, 0.65), leaf=False, blades=min(view.blades, 1), blur=0.004
    )
    return draw_over_scene(species, view, compose_view(species, view), size)


def withered_appearance(species: Species) -> Appearance:
    """How it looks once it is withered; independent of its looks before."""
    rng = stream("withered", species.scientific_name, species.common_name)
    color, second = rng.choice(list(COLORS), size=2, replace=False)
    return Appearance(str(color), str(rng.choice(PATTERNS)), str(second))


def withered(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The same species withered: its outside in other colours, the rest brown, bent over
    and shrivelled; a small fresh one stands beside it.
    """
    rng = stream(name, "withered")
    old = replace(species, outside=withered_appearance(species))
    side = 1.0 if rng.random() < 0.5 else -1.0
    view = sample_view(old, "side", 0.0, rng, name)
    scale = float(rng.uniform(0.7, 0.95))
    view = replace(view, scale=scale, x=-0.1 * side * scale, y=view.y / 2, flip=False, blur=0.004)
    view = replace(view, angle=view.angle / 3)
    sheet = stream(name, "wrinkles").normal(0, 26, size=2)
    bend = side * rng.uniform(1.5, 2.0)
    shapes = []
    for shape, lasting in zip(_drawn(old), _drawn(_other_colors(old)), strict=True):
        color = shape.color
        if color == lasting.color:  # stem and leaves
            color = rgb(0.35 * own + 0.65 * brown for own, brown in zip(color, _BROWN, strict=True))
        shapes.append(replace(shape, points=_bent(shape.points, bend, sheet), color=color))
    beside = replace(view, scale=0.42 * scale, x=-0.34 * side, y=view.y + 0.12, angle=0.0)
    fresh_one = place_shapes(_drawn(species), beside)
    return draw_over_scene(old, view, [*fresh_one, *place_shapes(shapes, view)], size)


def _drawn(species: Species) -> list[Shape]:
    return KINDS[species.kind].draw(species, "side", 0.0)


def _other_colors(species: Species) -> Species:
    """The species with all colours of its outside replaced."""
    look = species.outside
    free = [color for color in COLORS if color not in (look.color, look.second)]
    return replace(species, outside=Appearance(free[0], look.pattern, free[1]))


def _bent(points: Points, bend: float, sheet: np.ndarray) -> Points:
    """Wrinkled, and hanging to one side: the higher up, the further."""
    height = np.clip(0.35 - points[:, 1], 0.0, None)  # above the ground
    turn = bend * np.clip(height / 0.75, 0, 1) ** 1.5
    x = points[:, 0] * np.cos(turn) + 0.9 * height * np.sin(turn)
    y = points[:, 0] * np.sin(turn) - 0.9 * height * np.cos(turn) + 0.35
    hanging = np.column_stack([x, y])
    hanging[height == 0] = points[height == 0]
    bent: Points = hanging + np.sin(points @ sheet)[:, None] * 0.012
    return bent
