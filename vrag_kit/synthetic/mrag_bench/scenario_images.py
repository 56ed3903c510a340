"""Images that hide what a question asks, and images that show it.

The observer stands badly: at a steep angle, too close, far away, or behind leaves. Or something
happened to the organism: it is young, damaged, or has not withered yet. Or a specimen tray, a
pinned organism between eight colour chips, each marked with the letter of its colour, lacks a chip.

And six regions of the guide's country, each with its own sky, ground and landmark; an organism
stands close by in the query, and others of its kind far off in the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from vrag_kit.synthetic.world.organisms import KINDS, hidden_part
from vrag_kit.synthetic.world.photographs import (
    View,
    blurred,
    compose_view,
    draw_photograph,
    numbered_species,
    palette,
    place_shapes,
    sample_view,
    view_showing,
)
from vrag_kit.synthetic.world.shapes import (
    Color,
    Points,
    Shape,
    across,
    bounds,
    darker,
    direction,
    disc,
    ellipse,
    filled,
    in_pixels,
    lighter,
    moved,
    paint,
    part_mask,
    polygon,
    rgb,
    rotation,
    silhouette,
    smooth,
    to_image,
    transformed,
    visible_shares,
)
from vrag_kit.synthetic.world.traits import (
    COLOR_CODES,
    COLORS,
    Appearance,
    Species,
    choose,
    random_appearance,
    stream,
)

_TRIES = 200
_HIDDEN = 0.004  # share of the picture that the asked part may fill
_BROWN = (108, 82, 52)


def draw_scene(species: Species, view: View, size: int) -> Image.Image:
    """What a photograph of this view would be without the organism."""
    return draw_photograph(species, replace(view, x=9.0, leaf=False, blades=0), size)


def draw_over_scene(
    species: Species, view: View, shapes: Sequence[Shape], size: int
) -> Image.Image:
    """Shapes in frame coordinates over the scene of a view, in its light."""
    image = draw_scene(species, view, 2 * size)
    tint = np.array([1 + 0.1 * view.warmth, 1.0, 1 - 0.12 * view.warmth]) * view.light
    for shape in shapes:
        lit = np.clip(np.array(shape.color) * tint, 0, 255)
        paint(image, [replace(shape, color=rgb(lit))])
    return blurred(image.reduce(2), view)


def steep(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism from a steep angle, in a pose that does not show the part."""
    rng = stream(name, "steep")
    kind = KINDS[species.kind]
    pose = choose(kind.resting, rng) if hidden_part(species, part) else kind.hidden[1].pose
    view = sample_view(species, pose, 0.9, rng, name)
    view = replace(view, scale=rng.uniform(0.95, 1.15), angle=rng.uniform(-0.3, 0.3))
    view = replace(view, x=0.0, y=0.0, blur=0.004)
    axis = rng.uniform(1.1, 2.0)  # about an upright axis, or nearly: seen end on
    if species.kind in ("flower", "mushroom"):
        axis = rng.uniform(-0.35, 0.35)  # about a level one: seen from above
    tilt = rng.uniform(1.05, 1.2) * rng.choice((-1, 1))
    flat = kind.draw(species, pose, 0.0 if pose in kind.resting else 0.9)
    shapes = [replace(each, points=_tilted(each.points, axis, tilt)) for each in flat]
    return draw_over_scene(species, view, place_shapes(shapes, view), size)


def _tilted(points: Points, axis: float, tilt: float) -> Points:
    """A flat figure turned out of the picture by `tilt` about an axis through its
    middle, seen from near by.
    """
    along = direction(axis)
    side = across(along)
    height = points @ side
    depth = 1.0 + 0.75 * height * np.sin(tilt)
    turned = np.outer(points @ along / depth, along)
    return np.asarray(turned + np.outer(height * np.cos(tilt) / depth, side))


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
    pose = hidden.pose if hidden else KINDS[species.kind].outside_pose
    for _ in range(_TRIES):
        view = sample_view(species, pose, rng.uniform(0.6, 1.0), rng, name)
        view = replace(view, scale=rng.uniform(0.95, 1.1), leaf=False, blur=0.003, blades=1)
        left, top = rng.uniform(0.0, 0.5, size=2)
        shapes = compose_view(species, view)[:-1]  # without the blade
        organism = _share(shapes, left, top)
        if not hidden and 0.12 <= organism <= 0.45:
            return view, (left, top)
        if hidden and organism >= 0.28 and _share(shapes, left, top, part) <= _HIDDEN:
            return view, (left, top)
    raise RuntimeError(f"{species.scientific_name}: no crop hides the {part} ({name})")


def _share(shapes: list[Shape], left: float, top: float, part: str = "") -> float:
    """Share of a window, half as high and wide as the frame, that shows the part, or anything."""
    x, y = round(left * 96), round(top * 96)
    labels = part_mask(shapes, part, 96) if part else silhouette(shapes, 96)
    return labels.crop((x, y, x + 48, y + 48)).histogram()[255] / 48**2


def far(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism far away, in a view that would show the part, and not sharp."""
    rng = stream(name, "far")
    view = replace(view_showing(species, part, name), scale=rng.uniform(0.1, 0.2))
    view = replace(view, x=rng.uniform(-0.3, 0.3), y=rng.uniform(-0.3, 0.3))
    view = replace(view, blur=rng.uniform(0.006, 0.01), blades=0, leaf=False)
    return draw_photograph(species, view, size)


def covered(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism behind leaves and grass, which cover the part."""
    rng = stream(name, "covered")
    view = _centred(view_showing(species, part, name), 0.75, blur=0.003)
    organism = compose_view(species, view)
    low, high = bounds([shape for shape in organism if shape.part == part] or organism)
    _, *growing = palette(species)
    for n_leaves in count(3):
        shapes = list(organism)
        for _ in range(n_leaves):
            shapes += _leaf(rng.uniform(low, high), rng, growing, np.max(high - low))
        shapes += _grass(rng, growing)
        if visible_shares(shapes).get(part, 0.0) <= _HIDDEN:
            break
    return draw_over_scene(species, view, shapes, size)


def _centred(view: View, scale: float, *, blur: float) -> View:
    """The view with the organism in the middle, of this size at least, and nothing before it."""
    scale = max(view.scale, scale)
    return replace(view, scale=scale, x=0.0, y=0.0, leaf=False, blades=0, blur=blur)


def _leaf(centre: np.ndarray, rng: Generator, colors: Sequence[Color], reach: float) -> list[Shape]:
    """One pointed leaf with its midrib."""
    length = float(np.clip(reach * 0.6, 0.16, 0.4))
    matrix = rotation(rng.uniform(0, 2 * np.pi))
    wide = length * rng.uniform(0.38, 0.5)
    corners = polygon("-1 0, -0.3 -1, 0.4 -0.8, 1.1 0, 0.4 0.8, -0.3 1")
    outline = smooth(corners * (length, wide))
    rib = polygon("-1 -0.012, 1 0.0, -1 0.012") * (length, 1)
    color = darker(choose(colors, rng), rng.uniform(0.6, 1.1))
    edge = Shape(outline, darker(color, 0.7))
    inner = Shape(outline * 0.94, color)
    return transformed([edge, inner, Shape(rib, darker(color, 0.65))], matrix, centre)


def _grass(rng: Generator, colors: Sequence[Color]) -> Iterator[Shape]:
    """Some seven blades from the lower edge."""
    for _ in range(rng.integers(5, 10)):
        foot = rng.uniform(-0.5, 0.5)
        tip = rng.uniform(-0.45, 0.45)
        wide = rng.uniform(0.012, 0.035)
        top = rng.uniform(-0.45, 0.0)
        middle = 0.7 * foot + 0.3 * tip
        left = [(foot - wide, 0.56), (middle - wide, 0.1), (tip, top)]
        outline = smooth([*left, (middle + wide, 0.1), (foot + wide, 0.56)], 1)
        yield Shape(outline, darker(choose(colors, rng), rng.uniform(0.55, 1.1)))


def young(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The young one: caterpillar, chick, bud, button, fry or hatchling."""
    rng = stream(name, "young")
    kind = KINDS[species.kind]
    view = sample_view(species, kind.resting[0], 0.0, rng, name)
    turn = min(kind.turn, 0.35)
    view = replace(view, scale=rng.uniform(0.7, 0.9), x=view.x / 2, y=view.y / 2, blur=0.004)
    view = replace(view, angle=rng.uniform(-turn, turn))
    return draw_over_scene(species, view, place_shapes(kind.young(species), view), size)


def damaged(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism crumpled and torn; the part is torn away."""
    rng = stream(name, "damaged")
    view = _centred(view_showing(species, part, name), 0.8, blur=0.004)
    shapes = []
    for shape in compose_view(species, view):
        points = _crumpled(shape.points, stream(name, "crumple"))
        shapes.append(replace(shape, points=points))
    picture = draw_over_scene(species, view, shapes, size)
    tear = _tear(shapes, part, rng, size)
    rim = ImageChops.subtract(tear.filter(ImageFilter.MaxFilter(3)), tear)
    edge = ImageChops.multiply(rim, silhouette(shapes, size))
    picture = Image.composite(draw_scene(species, view, size), picture, tear)
    return Image.composite(Image.new("RGB", (size, size), (52, 36, 28)), picture, edge)


def _crumpled(points: Points, rng: Generator) -> Points:
    """The outline in a sheet that was crumpled: the same stream, the same creases."""
    for _ in range(3):
        wave = rng.normal(0, 9, size=2)
        way = rng.normal(0, 0.022, size=2)
        phase = rng.uniform(0, 2 * np.pi)
        points = points + np.sin(points @ wave + phase)[:, None] * way
    return points


def _tear(shapes: list[Shape], part: str, rng: Generator, size: int) -> Image.Image:
    """What is torn away, white: the part with a ragged margin, and wedges elsewhere."""
    mask = part_mask(shapes, part, size).filter(ImageFilter.MaxFilter(5))
    pen = ImageDraw.Draw(mask)
    low, high = bounds(shapes)
    middle = (low + high) / 2
    reach = (high - low) / 2
    for turn in rng.uniform(0, 2 * np.pi, size=4):
        away = direction(turn)
        side = across(away) * rng.uniform(0.05, 0.1)
        tip = middle + away * reach * 0.45
        root = middle + away * reach * 1.2
        before = tip + side * 0.7 + away * 0.05
        after = tip - side * 0.3 + away * 0.1
        jagged = np.array([root + side, before, tip, after, root - side])
        pen.polygon(in_pixels(jagged, size), fill=255)
    return mask


def fresh(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The organism in its prime, in a usual view."""
    rng = stream(name, "fresh")
    view = sample_view(species, "side", 0.0, rng, name)
    near, blades = max(view.scale, 0.65), min(view.blades, 1)
    view = replace(view, scale=near, leaf=False, blades=blades, blur=0.004)
    return draw_over_scene(species, view, compose_view(species, view), size)


def withered_appearance(species: Species) -> Appearance:
    """How it looks once it is withered; independent of its looks before."""
    return random_appearance(stream("withered", species.scientific_name, species.common_name))


def withered(species: Species, part: str, name: str, size: int) -> Image.Image:
    """The same species withered: its outside in other colours, the rest brown, bent over
    and shrivelled; a small fresh one stands beside it.
    """
    rng = stream(name, "withered")
    old = replace(species, outside=withered_appearance(species))
    side = 1.0 if rng.random() < 0.5 else -1.0
    view = sample_view(old, "side", 0.0, rng, name)
    scale = rng.uniform(0.7, 0.95)
    view = replace(view, scale=scale, x=-0.1 * side * scale, y=view.y / 2, flip=False, blur=0.004)
    view = replace(view, angle=view.angle / 3)
    sheet = stream(name, "wrinkles").normal(0, 26, size=2)
    bend = side * rng.uniform(1.5, 2.0)
    free = [c for c in COLORS if c not in (old.outside.color, old.outside.second)]
    other = replace(old, outside=replace(old.outside, color=free[0], second=free[1]))
    shapes = []
    for shape, lasting in zip(_drawn(old), _drawn(other), strict=True):
        color = shape.color
        if color == lasting.color:  # stem and leaves
            color = rgb(0.35 * np.array(color) + 0.65 * np.array(_BROWN))
        shapes.append(replace(shape, points=_bent(shape.points, bend, sheet), color=color))
    beside = replace(view, scale=0.42 * scale, x=-0.34 * side, y=view.y + 0.12, angle=0.0)
    fresh_one = place_shapes(_drawn(species), beside)
    return draw_over_scene(old, view, [*fresh_one, *place_shapes(shapes, view)], size)


def _drawn(species: Species) -> Iterator[Shape]:
    return KINDS[species.kind].draw(species, "side", 0.0)


def _bent(points: Points, bend: float, sheet: np.ndarray) -> Points:
    """Wrinkled, and hanging to one side: the higher up, the further."""
    x, y = points.T
    height = np.clip(0.35 - y, 0.0, None)  # above the ground
    turn = bend * np.clip(height / 0.75, 0, 1) ** 1.5
    sideways = x * np.cos(turn) + 0.9 * height * np.sin(turn)
    downward = x * np.sin(turn) - 0.9 * height * np.cos(turn) + 0.35
    hanging = np.column_stack([sideways, downward])
    hanging[height == 0] = points[height == 0]
    return np.asarray(hanging + np.sin(points @ sheet)[:, None] * 0.012)


N_CHIPS = 8


def draw_tray(
    species: Species, chips: Sequence[str], missing: int | None, key: str, name: str, size: int
) -> Image.Image:
    """Draw a specimen of the species between eight chips, keys of `COLORS`, the upper row first;
    the place `missing` is empty. The `key` determines the wood, and the `name` the photograph.
    """
    rng = stream(name, "photo")
    turn = rotation(rng.uniform(-0.1, 0.1))
    scale = rng.uniform(0.9, 1.0)
    offset = rng.uniform(-0.02, 0.02, size=2)
    side = 3 * size
    image = Image.new("RGB", (side, side), rgb(rng.uniform(60, 120, size=3)))
    wood = rgb(stream(key, "wood").uniform((120, 84, 52), (196, 150, 104)))
    places = [divmod(place, 4) for place in range(N_CHIPS)]
    centres = np.array([(-0.33 + 0.22 * column, -0.33 + 0.66 * row) for row, column in places])
    shapes = [*_board(species, wood)]
    for place, color in enumerate(chips):
        shapes += _chip(centres[place], None if place == missing else COLORS[color], wood)
    paint(image, transformed(shapes, scale * turn, offset))
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=side * 0.085 * scale)
    for place, color in enumerate(chips):
        if place != missing:
            x, y = (centres[place] @ (scale * turn).T + offset + 0.5) * side
            ink = (248, 248, 240) if sum(COLORS[color]) < 330 else (20, 20, 20)
            pen.text((x, y), COLOR_CODES[color], ink, font, anchor="mm")
    pixels = np.asarray(image.reduce(3), dtype=np.float32) * rng.uniform(0.85, 1.15)
    pixels += rng.standard_normal((size, size, 1)) * rng.uniform(1, 4)
    return to_image(pixels).filter(ImageFilter.GaussianBlur(0.3))


def _square(centre: np.ndarray, half: float, color: Color) -> Shape:
    return Shape(centre + half * polygon("-1 -1, 1 -1, 1 1, -1 1"), color)


def _board(species: Species, wood: Color) -> Iterator[Shape]:
    """The board with the pinned specimen."""
    yield _square(np.zeros(2), 0.485, darker(wood, 0.6))
    yield _square(np.zeros(2), 0.455, wood)
    yield filled("-0.44 -0.2, 0.44 -0.2, 0.44 0.2, -0.44 0.2", (238, 232, 216), 0)
    kind = KINDS[species.kind]
    specimen = kind.draw(species, kind.outside_pose, 0.0)
    yield from transformed(specimen, 0.36 * np.eye(2), (0.0, 0.0))
    yield disc(0, 0, 0.014, (210, 40, 40), 10)


def _chip(centre: np.ndarray, color: Color | None, wood: Color) -> Iterator[Shape]:
    """A chip in its place; None: the empty place, a dark hole."""
    yield _square(centre, 0.095, darker(wood, 0.45))
    if color:
        yield _square(centre, 0.088, lighter(color, 0.25))
        yield _square(centre + 0.006, 0.08, color)
    else:
        yield _square(centre + 0.012, 0.083, darker(wood, 0.3))


Land = Callable[[Generator], Iterator[Shape]]


@dataclass(frozen=True, slots=True)
class Region:
    """One region: its colours, and what stands on its horizon."""

    name: str
    sky: Color
    ground: Color
    land: Land  # shapes above and on the horizon, which is at y = 0
    words: str  # its look


def _mesas(rng: Generator) -> Iterator[Shape]:
    for x in rng.uniform(-0.5, 0.5, size=3):
        wide, high = rng.uniform((0.1, 0.14), (0.18, 0.26))
        top = [(x - 0.7 * wide, -high), (x + 0.7 * wide, -high)]
        rock = np.array([(x - wide, 0.02), *top, (x + wide, 0.02)])
        yield Shape(rock, (168, 78, 48))
        yield Shape(moved(rock * (1, 0.5), 0, -0.02), (138, 60, 40))


def _conifers(rng: Generator) -> Iterator[Shape]:
    for x in np.sort(rng.uniform(-0.55, 0.55, size=9)):
        high = rng.uniform(0.2, 0.4)
        for step in range(3):
            top = -high + 0.3 * high * step
            foot = top + 0.45 * high
            wide = 0.04 + 0.02 * step
            tree = np.array([(x, top), (x + wide, foot), (x - wide, foot)])
            yield Shape(tree, darker((34, 72, 52), rng.uniform(0.8, 1.1)))


def _palms(rng: Generator) -> Iterator[Shape]:
    yield filled("-0.6 0, 0.6 0, 0.6 0.08, -0.6 0.08", (60, 150, 190), 0)
    for x in rng.uniform(-0.45, 0.45, size=4):
        high = rng.uniform(0.22, 0.38)
        crown = (x + 0.03, -high)
        trunk = np.array([(x - 0.012, 0.12), (x + 0.012, 0.12), crown])
        yield Shape(trunk, (116, 88, 58))
        for turn in np.linspace(0.2, np.pi - 0.2, 6):
            out = x + 0.03 + 0.15 * np.cos(turn)
            down = -high + 0.07 - 0.1 * np.sin(turn)
            frond = smooth([crown, (out, down - 0.03), (out, down)], 1)
            yield Shape(frond, (56, 138, 60))


def _peaks(rng: Generator) -> Iterator[Shape]:
    for x in rng.uniform(-0.5, 0.5, size=4):
        wide, high = rng.uniform((0.2, 0.25), (0.3, 0.42))
        hill = np.array([(x - wide, 0.02), (x, -high), (x + wide, 0.02)])
        yield Shape(hill, (104, 112, 136))
        cap = polygon("-0.45 -0.55, 0 -1, 0.45 -0.55, 0.15 -0.62, -0.1 -0.5") * (wide, high)
        yield Shape(moved(cap, x, 0), (246, 248, 252))


_HUT = (
    ("-0.07 0.06, -0.07 -0.06, 0.07 -0.06, 0.07 0.06", (240, 234, 222)),
    ("-0.1 -0.05, 0 -0.16, 0.1 -0.05", (190, 46, 40)),
    ("-0.02 0.06, -0.02 -0.01, 0.02 -0.01, 0.02 0.06", (70, 50, 40)),
)
"""Outline and color of wall, roof and door."""


def _huts(rng: Generator) -> Iterator[Shape]:
    yield filled("-0.6 0.03, -0.2 -0.1, 0.2 -0.06, 0.6 0.03", (150, 90, 160))
    for x in rng.uniform(-0.4, 0.4, size=3):
        for outline, color in _HUT:
            yield Shape(moved(polygon(outline), x, 0.0), color)


def _reeds(rng: Generator) -> Iterator[Shape]:
    for i, x in enumerate(rng.uniform(-0.4, 0.4, size=3)):
        yield Shape(ellipse(x, 0.16 + 0.1 * i, 0.3, 0.04), (120, 156, 164))
    for x in rng.uniform(-0.55, 0.55, size=26):
        high = rng.uniform(0.1, 0.34)
        reed = np.array([(x - 0.008, 0.06), (x + 0.008, 0.06), (x + 0.01, -high)])
        yield Shape(reed, (146, 134, 70))
        yield Shape(ellipse(x + 0.01, -high, 0.013, 0.045, n=10), (92, 56, 34))


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


def _land(region: Region, horizon: float, grow: float, rng: Generator, side: int) -> Image.Image:
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
