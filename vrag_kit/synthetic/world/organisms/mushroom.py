"""Mushrooms: gills show from below, the flesh when the cap is cut in half."""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Shape,
    darker,
    ellipse,
    lighter,
    shaded,
    shrink_toward,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_pattern

_STEM = (224, 208, 178)
_CREASE = np.array([0.006, 0.0])


def _stem(top: float) -> list[Shape]:
    foot = [(0.075, 0.3), (0.12, 0.46), (-0.12, 0.46), (-0.075, 0.3)]
    return shaded(smooth([(-0.07, top), (0.07, top), *foot]), _STEM)


def _dome(species: Species) -> np.ndarray:
    height = 0.26 + 0.14 * species.build[0]
    return smooth(
        [
            (-0.42, 0.02),
            (-0.38, -height * 0.7),
            (-0.16, -height),
            (0.16, -height),
            (0.38, -height * 0.7),
            (0.42, 0.02),
            (0.2, 0.07),
            (-0.2, 0.07),
        ]
    )


def _from_below(species: Species, openness: float) -> list[Shape]:
    look, tilt = species.hidden["gills"], 0.03 + 0.25 * openness
    disc = ellipse(0, 0.02, 0.39, tilt)
    shapes = [
        *draw_pattern(
            _dome(species) * [1.0, 1.0 - 0.45 * openness], species.outside, "", (0.0, -0.1)
        ),
        *draw_pattern(disc, look, "gills", (0.0, 0.02)),
    ]
    crease = darker(COLORS[look.color], 0.8)
    for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
        rim = np.array([0.385 * np.cos(turn), 0.02 + 0.97 * tilt * np.sin(turn)])
        gill = np.stack([np.array([0.0, 0.02]), rim - _CREASE, rim + _CREASE])
        shapes.append(Shape(gill, crease, "gills", alpha=150))
    return [*shapes, *_stem(0.03)]


def _cut(species: Species, openness: float) -> list[Shape]:
    look, dome = species.hidden["flesh"], _dome(species)
    shapes = [*_stem(0.0), *draw_pattern(dome, species.outside, "", (0.0, -0.1))]
    face = shrink_toward(dome, (0.12 * (1 - openness) + 0.02, -0.1), 0.2 + 0.66 * openness)
    shapes.append(Shape(shrink_toward(face, face.mean(axis=0), 1.06), lighter(_STEM, 0.3)))
    anchor = (float(face[:, 0].mean()), float(face[:, 1].mean()))
    shapes += draw_pattern(face, look, "flesh", anchor)
    if openness > 0.5:
        stem = smooth([(-0.04, 0.06), (0.04, 0.06), (0.05, 0.42), (-0.05, 0.42)], 1)
        shapes += draw_pattern(stem, look, "flesh", (0.0, 0.24))
    return shapes


def draw(species: Species, pose: str, openness: float) -> list[Shape]:
    """A mushroom from the side, from below, or cut in half."""
    if pose == "from below":
        return _from_below(species, openness)
    if pose == "cut":
        return _cut(species, openness)
    shade = Shape(ellipse(0, 0.05, 0.34, 0.045), darker(_STEM, 0.45))
    return [*_stem(0.0), shade, *draw_pattern(_dome(species), species.outside, "", (0.0, -0.1))]
