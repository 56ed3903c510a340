"""Flowers: stamen tips show when the flower opens toward you, the undersides of the leaves in wind.
Mushrooms: gills show from below, the flesh when the cap is cut in half.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Points,
    Shape,
    darker,
    direction,
    ellipse,
    lighter,
    polygon,
    shaded,
    shrink_toward,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_part

_STEM = (88, 128, 58)


def _leaves(species: Species, turned: float) -> list[Shape]:
    shapes: list[Shape] = []
    for side, y in ((-1, 0.2), (1, 0.3)):
        upper = [(0.0, y + 0.05), (side * 0.14, y - 0.13), (side * 0.36, y - 0.12)]
        leaf = smooth([*upper, (side * 0.42, y - 0.03), (side * 0.2, y + 0.08)])
        shapes += shaded(leaf, _STEM)
        if turned > 0.02:
            upper = [(side * 0.16, y - 0.12 * turned), (side * 0.38, y + 0.02 - 0.15 * turned)]
            lower = [(side * 0.42, y), (side * 0.22, y + 0.12)]
            tip = smooth([(side * 0.03, y + 0.05), *upper, *lower])
            anchor = (side * 0.23, y + 0.02 - 0.05 * turned)
            shapes += draw_part(species, "undersides of the leaves", tip, anchor)
        vein = np.array([(0, y + 0.04), (side * 0.38, y - 0.055), (0, y + 0.06)])
        shapes.append(Shape(vein, darker(_STEM, 0.7)))
    return shapes


def _bell(species: Species) -> list[Shape]:
    width = 0.17 + 0.06 * species.build[0]
    shapes = shaded(smooth(polygon("-0.06 0.02, 0.06 0.02, 0.05 -0.06, -0.05 -0.06")), _STEM)
    for lean in (-0.7, 0.7, 0.0):
        x = lean * width
        rim = [(x - 0.14, -0.2), (x - 0.06, -0.4), (x + 0.06, -0.4), (x + 0.14, -0.2)]
        petal = smooth([(-0.05, -0.02), *rim, (0.05, -0.02)])
        shapes += draw_part(species, "", petal, (x * 0.8, -0.22))
    return shapes


def _open(species: Species, openness: float) -> list[Shape]:
    shapes: list[Shape] = []
    petals = 5 + int(species.build[1] * 2.99)
    spread = 0.55 + 0.45 * openness
    for turn in np.linspace(0, 2 * np.pi, petals, endpoint=False) + 0.3:
        x, y = 0.2 * direction(turn) * spread + (0, -0.12)
        shapes += draw_part(species, "", ellipse(x, y, 0.17, 0.11, turn), (x, y))
    heart = 0.11 * max(0.0, openness - 0.1)
    if not heart:
        return shapes
    shapes += shaded(ellipse(0, -0.12, 0.05 + heart * 0.8, 0.05 + heart * 0.8), (196, 178, 84))
    grown = 0.3 + 0.7 * openness
    for turn in np.linspace(0, 2 * np.pi, 8, endpoint=False):
        x, y = 1.35 * heart * direction(turn) + (0, -0.12)
        tip = ellipse(x, y, 0.048 * grown, 0.036 * grown, turn, n=14)
        shapes += draw_part(species, "stamen tips", tip, (x, y))
    return shapes


def draw_flower(species: Species, pose: str, openness: float) -> list[Shape]:
    """A flower on its stem: from the side, or open toward the observer."""
    stem = Shape(polygon("-0.014 0.0, 0.014 0.0, 0.024 0.55, -0.012 0.55"), darker(_STEM, 0.85))
    leaves = _leaves(species, openness if pose == "windblown" else 0.0)
    head = _open(species, openness) if pose == "facing" else _bell(species)
    return [stem, *leaves, *head]


_STALK = (224, 208, 178)


def _stalk(top: float) -> list[Shape]:
    foot = [(0.075, 0.3), (0.12, 0.46), (-0.12, 0.46), (-0.075, 0.3)]
    return shaded(smooth([(-0.07, top), (0.07, top), *foot]), _STALK)


def _dome(species: Species) -> Points:
    height = 0.26 + 0.14 * species.build[0]
    left = [(-0.42, 0.02), (-0.38, -height * 0.7), (-0.16, -height)]
    right = [(0.16, -height), (0.38, -height * 0.7), (0.42, 0.02)]
    return smooth([*left, *right, (0.2, 0.07), (-0.2, 0.07)])


def _from_below(species: Species, openness: float) -> list[Shape]:
    tilt = 0.03 + 0.25 * openness
    dome = _dome(species) * (1.0, 1.0 - 0.45 * openness)
    shapes = draw_part(species, "", dome, (0.0, -0.1))
    shapes += draw_part(species, "gills", ellipse(0, 0.02, 0.39, tilt), (0.0, 0.02))
    crease = darker(COLORS[species.hidden["gills"].color], 0.8)
    for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
        x = 0.385 * np.cos(turn)
        y = 0.02 + 0.97 * tilt * np.sin(turn)
        gill = np.array([(0.0, 0.02), (x - 0.006, y), (x + 0.006, y)])
        shapes.append(Shape(gill, crease, "gills", alpha=150))
    return [*shapes, *_stalk(0.03)]


def _cut(species: Species, openness: float) -> list[Shape]:
    dome = _dome(species)
    shapes = [*_stalk(0.0), *draw_part(species, "", dome, (0.0, -0.1))]
    face = shrink_toward(dome, (0.12 * (1 - openness) + 0.02, -0.1), 0.2 + 0.66 * openness)
    shapes.append(Shape(shrink_toward(face, face.mean(axis=0), 1.06), lighter(_STALK, 0.3)))
    shapes += draw_part(species, "flesh", face, (face[:, 0].mean(), face[:, 1].mean()))
    if openness > 0.5:
        stem = smooth(polygon("-0.04 0.06, 0.04 0.06, 0.05 0.42, -0.05 0.42"), 1)
        shapes += draw_part(species, "flesh", stem, (0.0, 0.24))
    return shapes


def draw_mushroom(species: Species, pose: str, openness: float) -> list[Shape]:
    """A mushroom from the side, from below, or cut in half."""
    if pose == "from below":
        return _from_below(species, openness)
    if pose == "cut":
        return _cut(species, openness)
    shade = Shape(ellipse(0, 0.05, 0.34, 0.045), darker(_STALK, 0.45))
    return [*_stalk(0.0), shade, *draw_part(species, "", _dome(species), (0.0, -0.1))]
