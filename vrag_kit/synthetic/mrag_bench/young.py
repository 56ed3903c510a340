"""Young organisms: caterpillar, chick in its nest, bud, button, fry and hatchling.

They show a pale hint of the grown one's outer colour, and none of its pattern.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Color,
    Shape,
    darker,
    ellipse,
    lighter,
    polygon,
    rgb,
    shaded,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species

_DOWN = (176, 164, 142)
_GREEN = (104, 140, 66)


def hint(species: Species) -> Color:
    """The grown one's outer colour, washed out."""
    grown = COLORS[species.outside.color]
    return rgb(0.6 * own + 0.4 * down for own, down in zip(grown, _DOWN, strict=True))


def caterpillar(species: Species) -> list[Shape]:
    """A row of round segments on a twig."""
    color = hint(species)
    twig = smooth([(-0.52, 0.18), (0.52, 0.06), (0.52, 0.11), (-0.52, 0.24)], 1)
    leaf = smooth([(0.1, 0.1), (0.2, -0.32), (0.42, -0.36), (0.36, -0.05)])
    shapes = [Shape(leaf, _GREEN), Shape(twig, (92, 72, 48))]
    for step in range(8):
        x, y = -0.36 + 0.09 * step, 0.05 - 0.09 * np.sin(step / 7 * np.pi) - 0.02 * step / 7
        foot = ellipse(x, y + 0.1, 0.018, 0.04, n=8)
        shapes += [Shape(foot, darker(color, 0.5)), *shaded(ellipse(x, y, 0.075, 0.09), color)]
    shapes += shaded(ellipse(0.36, -0.01, 0.085, 0.085), darker(color, 0.55))
    return [*shapes, Shape(ellipse(0.4, -0.03, 0.02, 0.024, n=10), (240, 236, 220))]


def chick(species: Species) -> list[Shape]:
    """A downy ball with a wide bill, in a nest."""
    color = hint(species)
    nest = smooth([(-0.44, 0.12), (0.44, 0.12), (0.34, 0.42), (-0.34, 0.42)])
    shapes: list[Shape] = []
    for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
        tuft = np.array([(0.05, 0.0), (0.31, 0.02), (0.05, 0.05)]) - [0.0, 0.02]
        c, s = np.cos(turn), np.sin(turn)
        shapes.append(Shape(tuft @ np.array([[c, s], [-s, c]]), lighter(color, 0.2)))
    shapes += shaded(ellipse(0, 0, 0.25, 0.25), color)
    shapes += shaded(ellipse(0.02, -0.24, 0.17, 0.16), color)
    shapes.append(Shape(polygon("0.12 -0.26, 0.3 -0.36, 0.2 -0.24, 0.3 -0.14"), (236, 178, 60)))
    for x in (-0.04, 0.1):
        shapes.append(Shape(ellipse(x, -0.3, 0.035, 0.035, n=12), (20, 18, 20)))
        shapes.append(Shape(ellipse(x + 0.01, -0.31, 0.01, 0.01, n=6), (250, 250, 250)))
    shapes += [Shape(nest, (112, 84, 52))]
    for row in range(7):
        y = 0.15 + 0.035 * row
        straw = [(-0.42 + 0.012 * row, y), (0.4 - 0.012 * row, y + 0.05), (0.4, y + 0.062)]
        shapes.append(Shape(np.array(straw), (152, 122, 78) if row % 2 else (84, 60, 36)))
    return shapes


def bud(species: Species) -> list[Shape]:
    """A closed green bud; the tip shows a little of the petals."""
    color = hint(species)
    stem = polygon("-0.014 0, 0.014 0, 0.022 0.55, -0.01 0.55")
    shapes = [Shape(stem, darker(_GREEN, 0.8))]
    for side in (-1, 1):
        leaf = smooth([(0.0, 0.42), (side * 0.2, 0.18), (side * 0.32, 0.12), (side * 0.2, 0.34)])
        shapes += shaded(leaf, _GREEN)
    shapes += shaded(smooth([(-0.1, -0.1), (0.0, -0.46), (0.1, -0.1), (0.0, 0.0)]), color)
    for side in (-1, 1):
        sepal = smooth([(0.0, 0.06), (side * 0.2, -0.06), (side * 0.1, -0.34), (0.0, -0.12)])
        shapes += shaded(sepal, _GREEN)
    return [*shapes, *shaded(smooth([(0, 0.07), (-0.08, -0.05), (0, -0.3), (0.08, -0.05)]), _GREEN)]


def button(species: Species) -> list[Shape]:
    """An egg that breaks the ground, with the cap just coming through."""
    color = hint(species)
    ground = smooth(polygon("-0.5 0.32, -0.2 0.24, 0.2 0.24, 0.5 0.32, 0.4 0.5, -0.4 0.5"))
    cap = smooth(polygon("-0.15 -0.1, -0.1 -0.23, 0.1 -0.23, 0.15 -0.1, 0.05 -0.06, -0.05 -0.06"))
    crack = polygon("-0.17 -0.08, -0.08 -0.02, -0.02 -0.08, 0.06 -0.01, 0.17 -0.08, 0.06 -0.04")
    return [
        *shaded(ellipse(0, 0.06, 0.22, 0.28), (228, 218, 196)),
        *shaded(cap, color),
        Shape(crack, (150, 134, 104)),
        *shaded(ellipse(0.33, 0.24, 0.09, 0.11), (222, 212, 190)),
        Shape(ground, (84, 66, 46)),
    ]


def fry(species: Species) -> list[Shape]:
    """A glassy little fish with large eyes and a yolk sac."""
    color = lighter(hint(species), 0.15)
    tail = smooth([(-0.2, 0.0), (-0.46, -0.07), (-0.42, 0.0), (-0.46, 0.07)], 1)
    body = smooth(polygon("-0.3 0.0, 0.0 -0.09, 0.26 -0.13, 0.4 0.0, 0.26 0.11, 0.0 0.07"))
    spine = np.array([(-0.3, -0.004), (0.24, -0.02), (0.24, 0.0), (-0.3, 0.008)])
    return [
        Shape(tail, color, alpha=170),
        *shaded(ellipse(0.14, 0.13, 0.13, 0.1), (232, 168, 74)),
        Shape(body, color, alpha=235),
        Shape(spine, darker(color, 0.6)),
        Shape(ellipse(0.27, -0.03, 0.085, 0.085), (240, 240, 230)),
        Shape(ellipse(0.28, -0.03, 0.058, 0.058), (20, 20, 24)),
        Shape(ellipse(0.3, -0.05, 0.016, 0.016, n=8), (250, 250, 250)),
    ]


def hatchling(species: Species) -> list[Shape]:
    """A head with large eyes that comes out of a broken egg."""
    color = hint(species)
    back = smooth(polygon("-0.3 0.1, -0.22 -0.22, 0.1 -0.3, 0.24 0.0, 0.2 0.34, -0.2 0.36"))
    jagged = polygon("-0.31 0.08, -0.2 0.0, -0.12 0.1, -0.02 0.0, 0.08 0.1, 0.17 0.01, 0.27 0.1")
    shell = np.array([*jagged, (0.22, 0.3), (0.1, 0.41), (-0.14, 0.41), (-0.27, 0.29)])
    neck = smooth([(-0.08, 0.16), (-0.02, -0.1), (0.14, -0.14), (0.14, 0.16)])
    head = smooth(polygon("-0.06 -0.12, 0.06 -0.34, 0.28 -0.34, 0.44 -0.2, 0.3 -0.08, 0.08 -0.04"))
    arm = smooth(polygon("0.1 0.06, 0.26 0.02, 0.36 0.12, 0.3 0.14, 0.16 0.12"), 1)
    return [
        Shape(back, (204, 196, 178)),
        *shaded(neck, color),
        *shaded(head, color),
        Shape(ellipse(0.18, -0.24, 0.06, 0.06), (240, 214, 110)),
        Shape(ellipse(0.19, -0.24, 0.03, 0.044), (16, 16, 16)),
        Shape(shell, (236, 230, 214)),
        *shaded(arm, darker(color, 0.8)),
    ]


YOUNG: dict[str, Callable[[Species], list[Shape]]] = {
    "moth": caterpillar,
    "bird": chick,
    "flower": bud,
    "mushroom": button,
    "fish": fry,
    "lizard": hatchling,
}
"""Kind of organism → shapes of a young one, from back to front, spanning about 1."""
