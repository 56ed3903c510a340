"""Pictures that hide something by where the observer stands: seen at a steep angle, only
a part of it in the frame, far away, or behind leaves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image

from vrag_kit.synthetic.mrag_bench.painting import (
    OUTSIDE_POSE,
    draw_over_scene,
    hidden_part,
    view_showing,
)
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.shapes import Points, Shape, darker, part_map, rgb, smooth
from vrag_kit.synthetic.world.traits import Species, stream
from vrag_kit.synthetic.world.views import (
    SCENES,
    View,
    compose_view,
    draw_photograph,
    place_shapes,
    sample_view,
)

_TRIES = 200
_HIDDEN = 0.004  # share of the picture that the asked part may fill


def steep(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism from a steep angle, in a pose that does not show the part."""
    rng = stream(name, "steep")
    kind = KINDS[species.kind]
    pose = str(rng.choice(kind.resting)) if hidden_part(species, part) else kind.hidden[1].pose
    view = sample_view(species, pose, 0.9, rng, name)
    view = replace(view, scale=float(rng.uniform(0.95, 1.15)), x=0.0, y=0.0, blur=0.004)
    view = replace(view, angle=float(rng.uniform(-0.3, 0.3)))
    axis = rng.uniform(1.1, 2.0)  # about an upright axis, or nearly: seen end on
    if species.kind in ("flower", "mushroom"):
        axis = rng.uniform(-0.35, 0.35)  # about a level one: seen from above
    tilt = rng.uniform(1.05, 1.2) * rng.choice((-1, 1))
    shapes = [
        replace(shape, points=_tilted(shape.points, axis, tilt))
        for shape in kind.draw(species, pose, 0.0 if pose in kind.resting else 0.9)
    ]
    return draw_over_scene(species, view, place_shapes(shapes, view), size)


def _tilted(points: Points, axis: float, tilt: float) -> Points:
    """A flat figure turned out of the picture by `tilt` about an axis through its
    middle, seen from near by.
    """
    along = np.array([np.cos(axis), np.sin(axis)])
    across = np.array([-along[1], along[0]])
    u, v = points @ along, points @ across
    depth = 1.0 + 0.75 * v * np.sin(tilt)
    turned: Points = np.outer(u / depth, along) + np.outer(v * np.cos(tilt) / depth, across)
    return turned


def cropped(species: Species, part: str, name: str, size: int) -> Image.Image:
    """Half the height and width of `whole`, without the part."""
    view, (left, top) = _crop(species, part, name)
    x, y = round(left * 2 * size), round(top * 2 * size)
    return draw_photograph(species, view, 2 * size).crop((x, y, x + size, y + size))


def whole(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The photograph, twice as high and wide, that `cropped` is a part of."""
    return draw_photograph(species, _crop(species, part, name)[0], 2 * size)


def _crop(species: Species, part: str, name: str) -> tuple[View, tuple[float, float]]:
    """A view in which the organism fills the frame, and the corner of a window of half
    its height and width that shows much of the organism and nothing of the part.
    """
    rng = stream(name, "crop")
    hidden = hidden_part(species, part)
    pose = hidden.pose if hidden else OUTSIDE_POSE[species.kind]
    for _ in range(_TRIES):
        view = sample_view(species, pose, float(rng.uniform(0.6, 1.0)), rng, name)
        view = replace(view, scale=float(rng.uniform(0.95, 1.1)), leaf=False, blur=0.003, blades=1)
        left, top = rng.uniform(0.0, 0.5, size=2)
        shapes = compose_view(species, view)[:-1]  # without the blade
        there = _share([replace(each, part="organism") for each in shapes], left, top, "organism")
        if not hidden and 0.12 <= there <= 0.45:
            return view, (left, top)
        if hidden and there >= 0.28 and _share(shapes, left, top, part) <= _HIDDEN:
            return view, (left, top)
    raise RuntimeError(f"{species.scientific_name}: no crop hides the {part} ({name})")


def _share(shapes: list[Shape], left: float, top: float, part: str) -> float:
    """Share of a window, half as high and wide as the frame, that shows the part."""
    labels, label_of = part_map(shapes, 96)
    window = labels.crop(
        (round(left * 96), round(top * 96), round(left * 96) + 48, round(top * 96) + 48)
    )
    return window.histogram()[label_of[part]] / 48**2 if part in label_of else 0.0


def far(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism far away, in a view that would show the part, and not sharp."""
    rng = stream(name, "far")
    scale = float(rng.uniform(0.1, 0.2))
    x, y = rng.uniform(-0.3, 0.3, size=2)
    view = replace(
        view_showing(species, part, name),
        scale=scale,
        x=float(x),
        y=float(y),
        blur=float(rng.uniform(0.006, 0.01)),
        blades=0,
        leaf=False,
    )
    return draw_photograph(species, view, size)


def covered(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism behind leaves and grass, which cover the part."""
    rng = stream(name, "covered")
    hidden = hidden_part(species, part)
    view = view_showing(species, part, name)
    view = replace(
        view, scale=max(view.scale, 0.75), x=0.0, y=0.0, leaf=False, blades=0, blur=0.003
    )
    organism = compose_view(species, view)
    target = [shape for shape in organism if shape.part == part] if hidden else organism
    leaves: list[Shape] = []
    for attempt in range(_TRIES):
        palette = SCENES[KINDS[species.kind].scene]
        leaves = [*_leaves(target, rng, palette, attempt), *_grass(rng, palette)]
        labels, label_of = part_map([*organism, *leaves], 96)
        seen = labels.histogram()[label_of[part]] / 96**2 if part in label_of else 0.0
        if seen <= _HIDDEN:
            break
    return draw_over_scene(species, view, [*organism, *leaves], size)


def _leaves(
    target: list[Shape],
    rng: np.random.Generator,
    palette: tuple[tuple[int, int, int], ...],
    more: int,
) -> list[Shape]:
    """Large leaves over every outline of the target."""
    points = np.concatenate([shape.points for shape in target])
    low, high = points.min(axis=0), points.max(axis=0)
    shapes: list[Shape] = []
    for _ in range(3 + more):
        centre = rng.uniform(low, high)
        shapes += _leaf(centre, rng, palette, np.max(high - low))
    return shapes


def _leaf(
    centre: np.ndarray,
    rng: np.random.Generator,
    palette: tuple[tuple[int, int, int], ...],
    reach: float,
) -> list[Shape]:
    """One pointed leaf with its midrib."""
    length, turn = float(np.clip(reach * 0.6, 0.16, 0.4)), rng.uniform(0, 2 * np.pi)
    wide = length * rng.uniform(0.38, 0.5)
    c, s = np.cos(turn), np.sin(turn)
    matrix = np.array([[c, -s], [s, c]])
    outline = smooth(
        [
            (-length, 0),
            (-0.3 * length, -wide),
            (0.4 * length, -0.8 * wide),
            (length * 1.1, 0),
            (0.4 * length, 0.8 * wide),
            (-0.3 * length, wide),
        ]
    )
    rib = np.array([(-length, -0.012), (length, 0.0), (-length, 0.012)])
    shade = palette[int(rng.integers(1, len(palette)))]
    color = rgb(np.clip(np.array(shade) * rng.uniform(0.6, 1.1), 0, 255))
    return [
        Shape(outline @ matrix.T + centre, darker(color, 0.7)),
        Shape((outline * 0.94) @ matrix.T + centre, color),
        Shape(rib @ matrix.T + centre, darker(color, 0.65)),
    ]


def _grass(rng: np.random.Generator, palette: tuple[tuple[int, int, int], ...]) -> list[Shape]:
    """Some seven blades from the lower edge."""
    shapes = []
    for _ in range(int(rng.integers(5, 10))):
        foot, tip = rng.uniform(-0.5, 0.5), rng.uniform(-0.45, 0.45)
        wide, top = rng.uniform(0.012, 0.035), rng.uniform(-0.45, 0.0)
        middle = (0.7 * foot + 0.3 * tip, 0.1)
        outline = np.array(
            [
                (foot - wide, 0.56),
                (middle[0] - wide, middle[1]),
                (tip, top),
                (middle[0] + wide, middle[1]),
                (foot + wide, 0.56),
            ]
        )
        shade = palette[int(rng.integers(1, len(palette)))]
        color = rgb(np.clip(np.array(shade) * rng.uniform(0.55, 1.1), 0, 255))
        shapes.append(Shape(smooth(outline, 1), color))
    return shapes
