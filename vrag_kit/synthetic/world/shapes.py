"""Coloured polygons in unit coordinates, and the two ways to draw them: as a picture
and as a map of parts.

The centre of a scene is (0, 0), x runs right, y runs down, and an organism spans about
1. Every polygon may name the body part it belongs to; drawn in the same order, the part
map therefore tells what an observer can see of each part after everything in front of
it was drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from PIL import Image, ImageDraw

Color = tuple[int, int, int]
Points = np.ndarray  # float64, shape (n, 2)


@dataclass(frozen=True, slots=True)
class Shape:
    """One filled polygon."""

    points: Points  # outline in scene coordinates, shape (n, 2)
    color: Color  # sRGB, 0–255
    part: str = ""  # body part it shows; "" for what nobody asks about
    alpha: int = 255  # 255 covers what is below; highlights and shadows use less


def ellipse(x: float, y: float, rx: float, ry: float, angle: float = 0.0, n: int = 22) -> Points:
    """Outline of an ellipse around (x, y), turned by `angle` radians."""
    cosines, sines = _circle(n)
    px, py = rx * cosines, ry * sines
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([x + c * px - s * py, y + s * px + c * py])


def disc(x: float, y: float, radius: float, color: Color, n: int = 12) -> Shape:
    """A filled circle around (x, y)."""
    return Shape(ellipse(x, y, radius, radius, n=n), color)


@cache
def _circle(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of `n` even steps around a circle."""
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.cos(t), np.sin(t)


def polygon(corners: str) -> Points:
    """Return an outline from words: "x y, x y, …"."""
    return np.array([corner.split() for corner in corners.split(",")], dtype=float)


def direction(angle: float | np.ndarray) -> np.ndarray:
    """Return the unit vector at `angle` radians; of n angles, shape (2, n)."""
    return np.array([np.cos(angle), np.sin(angle)])


def across(vector: np.ndarray) -> np.ndarray:
    """Return a vector turned by a quarter."""
    return np.array([-vector[1], vector[0]])


def rotation(angle: float) -> np.ndarray:
    """Matrix that turns columns of points by `angle` radians, shape (2, 2)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def smooth(points: Sequence[Sequence[float]] | Points, rounds: int = 2) -> Points:
    """Round the corners of a closed outline by `rounds` of Chaikin's corner cutting."""
    outline = np.asarray(points, dtype=float)
    for _ in range(rounds):
        following = np.roll(outline, -1, axis=0)
        near = 0.75 * outline + 0.25 * following
        far = 0.25 * outline + 0.75 * following
        outline = np.stack([near, far], axis=1).reshape(-1, 2)
    return outline


def shrink_toward(points: Points, anchor: Sequence[float] | Points, share: float) -> Points:
    """Shrink an outline to `share` of its size about `anchor`."""
    middle = np.asarray(anchor, dtype=float)
    return np.asarray(middle + share * (points - middle))


def moved(points: Points, x: float, y: float) -> Points:
    """Return the outline, or a point, moved by (x, y)."""
    return np.asarray(points + np.array([x, y]))


def transformed(
    shapes: Iterable[Shape], matrix: np.ndarray, offset: Sequence[float] | Points
) -> list[Shape]:
    """Every shape with its points mapped by `points @ matrix.T + offset`."""
    shift = np.asarray(offset, dtype=float)
    return [replace(shape, points=shape.points @ matrix.T + shift) for shape in shapes]


def filled(corners: str, color: Color, rounds: int = 2, alpha: int = 255) -> Shape:
    """A polygon in words, its corners cut off in `rounds`."""
    return Shape(smooth(polygon(corners), rounds), color, alpha=alpha)


def shaded(points: Points, color: Color) -> Iterator[Shape]:
    """A body with a darker rim and a soft highlight at its upper left: three shapes."""
    centre = points.mean(axis=0)
    light = shrink_toward(points, moved(centre, -0.05, -0.1), 0.55)
    yield Shape(points, darker(color, 0.72))
    yield Shape(shrink_toward(points, centre, 0.93), color)
    yield Shape(light, lighter(color, 0.25), alpha=70)


def darker(color: Color, share: float) -> Color:
    """`color` with its light multiplied by `share`."""
    return rgb(c * share for c in color)


def lighter(color: Color, share: float) -> Color:
    """`color` moved toward white by `share`."""
    return rgb(c + (255 - c) * share for c in color)


def rgb(values: Iterable[float]) -> Color:
    """Three values in 0–255 as a colour; fractions are cut off."""
    whole = [int(value) for value in values]
    return whole[0], whole[1], whole[2]


def in_pixels(points: Points, size: int) -> list[float]:
    """Return an outline as x, y, x, y, … in pixels of a square image."""
    return ((points + 0.5) * size).ravel().tolist()


def paint(image: Image.Image, shapes: Iterable[Shape]) -> None:
    """Draw `shapes` in order onto a square RGB `image`; scene (−0.5, −0.5) is its upper
    left corner.
    """
    pen = ImageDraw.Draw(image, "RGBA")
    for shape in shapes:
        pen.polygon(in_pixels(shape.points, image.width), fill=(*shape.color, shape.alpha))


def part_map(shapes: Iterable[Shape], resolution: int) -> tuple[Image.Image, dict[str, int]]:
    """What an observer sees of each part once everything is drawn: a picture of labels,
    and the label of each part ("" for all else is 0).
    """
    label_of: dict[str, int] = {"": 0}
    labels = Image.new("L", (resolution, resolution))
    pen = ImageDraw.Draw(labels)
    for shape in shapes:
        if shape.alpha == 255:
            label = label_of.setdefault(shape.part, len(label_of))
            pen.polygon(in_pixels(shape.points, resolution), fill=label)
    return labels, label_of


def part_mask(shapes: Iterable[Shape], part: str, resolution: int) -> Image.Image:
    """Return 255 where an observer sees the part, else 0."""
    labels, label_of = part_map(shapes, resolution)
    wanted = label_of.get(part)
    return labels.point(lambda label: 255 if label == wanted else 0)


def silhouette(shapes: Iterable[Shape], resolution: int) -> Image.Image:
    """Return 255 where any opaque shape is, else 0."""
    return part_mask([replace(shape, part="any") for shape in shapes], "any", resolution)


def to_image(pixels: np.ndarray) -> Image.Image:
    """Return an RGB image of pixels, cut to 0–255; fractions are cut off."""
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def bounds(shapes: Iterable[Shape]) -> tuple[Points, Points]:
    """Return the upper left and the lower right corner of the box around all outlines."""
    points = np.concatenate([shape.points for shape in shapes])
    return points.min(axis=0), points.max(axis=0)


def visible_shares(shapes: Iterable[Shape]) -> dict[str, float]:
    """Share of the frame, in [0, 1], that shows each part once everything is drawn: 0 where it is
    hidden; absent parts are absent.
    """
    labels, label_of = part_map(shapes, 96)
    counts = labels.histogram()
    return {part: counts[label] / 96**2 for part, label in label_of.items() if part}
