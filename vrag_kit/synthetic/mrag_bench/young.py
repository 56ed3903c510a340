"""Young organisms: caterpillar, chick in its nest, bud, button, fry and hatchling.

They show a pale hint of the grown one's outer colour, and none of its pattern.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Color,
    Points,
    Shape,
    darker,
    disc,
    ellipse,
    lighter,
    polygon,
    rgb,
    rotation,
    shaded,
    smooth,
)
from vrag_kit.synthetic.world.traits import Species

_DOWN = (176, 164, 142)
_GREEN = (104, 140, 66)


def hint(species: Species) -> Color:
    """The grown one's outer color, washed out."""
    return rgb(0.6 * own + 0.4 * down for own, down in zip(species.coat, _DOWN, strict=True))


def caterpillar(species: Species) -> list[Shape]:
    """A row of round segments on a twig."""
    color = hint(species)
    leaf = smooth(polygon("0.1 0.1, 0.2 -0.32, 0.42 -0.36, 0.36 -0.05"))
    twig = smooth(polygon("-0.52 0.18, 0.52 0.06, 0.52 0.11, -0.52 0.24"), 1)
    shapes = [Shape(leaf, _GREEN), Shape(twig, (92, 72, 48))]
    for step in range(8):
        x = -0.36 + 0.09 * step
        y = 0.05 - 0.09 * np.sin(step / 7 * np.pi) - 0.02 * step / 7
        shapes.append(Shape(ellipse(x, y + 0.1, 0.018, 0.04, n=8), darker(color, 0.5)))
        shapes += shaded(ellipse(x, y, 0.075, 0.09), color)
    shapes += shaded(ellipse(0.36, -0.01, 0.085, 0.085), darker(color, 0.55))
    return [*shapes, Shape(ellipse(0.4, -0.03, 0.02, 0.024, n=10), (240, 236, 220))]


def chick(species: Species) -> list[Shape]:
    """A downy ball with a wide bill, in a nest."""
    color = hint(species)
    shapes: list[Shape] = []
    tuft = polygon("0.05 0.0, 0.31 0.02, 0.05 0.05") - (0.0, 0.02)
    for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
        shapes.append(Shape(tuft @ rotation(turn).T, lighter(color, 0.2)))
    shapes += shaded(ellipse(0, 0, 0.25, 0.25), color)
    shapes += shaded(ellipse(0.02, -0.24, 0.17, 0.16), color)
    shapes.append(Shape(polygon("0.12 -0.26, 0.3 -0.36, 0.2 -0.24, 0.3 -0.14"), (236, 178, 60)))
    for x in (-0.04, 0.1):
        shapes.append(disc(x, -0.3, 0.035, (20, 18, 20)))
        shapes.append(disc(x + 0.01, -0.31, 0.01, (250, 250, 250), 6))
    nest = smooth(polygon("-0.44 0.12, 0.44 0.12, 0.34 0.42, -0.34 0.42"))
    shapes.append(Shape(nest, (112, 84, 52)))
    for row in range(7):
        y = 0.15 + 0.035 * row
        straw = [(-0.42 + 0.012 * row, y), (0.4 - 0.012 * row, y + 0.05), (0.4, y + 0.062)]
        shapes.append(Shape(np.array(straw), (152, 122, 78) if row % 2 else (84, 60, 36)))
    return shapes


def bud(species: Species) -> list[Shape]:
    """A closed green bud; the tip shows a little of the petals."""
    stem = polygon("-0.014 0, 0.014 0, 0.022 0.55, -0.01 0.55")
    petals = polygon("-0.1 -0.1, 0.0 -0.46, 0.1 -0.1, 0.0 0.0")
    shapes = [Shape(stem, darker(_GREEN, 0.8))]
    shapes += _on_both_sides(polygon("0.0 0.42, 0.2 0.18, 0.32 0.12, 0.2 0.34"))
    shapes += shaded(smooth(petals), hint(species))
    shapes += _on_both_sides(polygon("0.0 0.06, 0.2 -0.06, 0.1 -0.34, 0.0 -0.12"))
    sepal = polygon("0 0.07, -0.08 -0.05, 0 -0.3, 0.08 -0.05")
    return [*shapes, *shaded(smooth(sepal), _GREEN)]


def _on_both_sides(leaf: Points) -> list[Shape]:
    left = shaded(smooth(leaf * (-1, 1)), _GREEN)
    return [*left, *shaded(smooth(leaf), _GREEN)]


def button(species: Species) -> list[Shape]:
    """An egg that breaks the ground, with the cap just coming through."""
    ground = smooth(polygon("-0.5 0.32, -0.2 0.24, 0.2 0.24, 0.5 0.32, 0.4 0.5, -0.4 0.5"))
    cap = smooth(polygon("-0.15 -0.1, -0.1 -0.23, 0.1 -0.23, 0.15 -0.1, 0.05 -0.06, -0.05 -0.06"))
    crack = polygon("-0.17 -0.08, -0.08 -0.02, -0.02 -0.08, 0.06 -0.01, 0.17 -0.08, 0.06 -0.04")
    return [
        *shaded(ellipse(0, 0.06, 0.22, 0.28), (228, 218, 196)),
        *shaded(cap, hint(species)),
        Shape(crack, (150, 134, 104)),
        *shaded(ellipse(0.33, 0.24, 0.09, 0.11), (222, 212, 190)),
        Shape(ground, (84, 66, 46)),
    ]


def fry(species: Species) -> list[Shape]:
    """A glassy little fish with large eyes and a yolk sac."""
    color = lighter(hint(species), 0.15)
    tail = smooth(polygon("-0.2 0.0, -0.46 -0.07, -0.42 0.0, -0.46 0.07"), 1)
    body = smooth(polygon("-0.3 0.0, 0.0 -0.09, 0.26 -0.13, 0.4 0.0, 0.26 0.11, 0.0 0.07"))
    spine = polygon("-0.3 -0.004, 0.24 -0.02, 0.24 0.0, -0.3 0.008")
    shapes = [Shape(tail, color, alpha=170)]
    shapes += shaded(ellipse(0.14, 0.13, 0.13, 0.1), (232, 168, 74))
    shapes += [Shape(body, color, alpha=235), Shape(spine, darker(color, 0.6))]
    shapes.append(disc(0.27, -0.03, 0.085, (240, 240, 230), 22))
    shapes.append(disc(0.28, -0.03, 0.058, (20, 20, 24), 22))
    shapes.append(disc(0.3, -0.05, 0.016, (250, 250, 250), 8))
    return shapes


def hatchling(species: Species) -> list[Shape]:
    """A head with large eyes that comes out of a broken egg."""
    color = hint(species)
    back = smooth(polygon("-0.3 0.1, -0.22 -0.22, 0.1 -0.3, 0.24 0.0, 0.2 0.34, -0.2 0.36"))
    neck = smooth(polygon("-0.08 0.16, -0.02 -0.1, 0.14 -0.14, 0.14 0.16"))
    head = smooth(polygon("-0.06 -0.12, 0.06 -0.34, 0.28 -0.34, 0.44 -0.2, 0.3 -0.08, 0.08 -0.04"))
    shell = polygon(
        "-0.31 0.08, -0.2 0.0, -0.12 0.1, -0.02 0.0, 0.08 0.1, 0.17 0.01, 0.27 0.1, 0.22 0.3,"
        " 0.1 0.41, -0.14 0.41, -0.27 0.29"
    )
    arm = smooth(polygon("0.1 0.06, 0.26 0.02, 0.36 0.12, 0.3 0.14, 0.16 0.12"), 1)
    shapes = [Shape(back, (204, 196, 178)), *shaded(neck, color), *shaded(head, color)]
    shapes.append(disc(0.18, -0.24, 0.06, (240, 214, 110), 22))
    shapes.append(Shape(ellipse(0.19, -0.24, 0.03, 0.044), (16, 16, 16)))
    shapes.append(Shape(shell, (236, 230, 214)))
    return [*shapes, *shaded(arm, darker(color, 0.8))]


YOUNG: dict[str, Callable[[Species], list[Shape]]] = {
    "moth": caterpillar,
    "bird": chick,
    "flower": bud,
    "mushroom": button,
    "fish": fry,
    "lizard": hatchling,
}
"""Kind of organism → shapes of a young one, from back to front, spanning about 1."""
