"""Moths: forewings cover the hindwings at rest; the underside shows when the wings
close upright.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Points,
    Shape,
    darker,
    ellipse,
    mirrored,
    polygon,
    shaded,
    shrink_toward,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_pattern


def _turned(points: Points, angle: float, hinge: tuple[float, float]) -> Points:
    c, s = np.cos(angle), np.sin(angle)
    turned: Points = (points - hinge) @ np.array([[c, -s], [s, c]]).T + hinge
    return turned


def _body(species: Species) -> list[Shape]:
    coat = darker(COLORS[species.outside.color], 0.62)
    antennae = []
    for x in (-0.1, 0.1):
        outline = smooth([(0, -0.2), (x, -0.36), (x * 1.5, -0.42), (x * 0.8, -0.35)])
        antennae.append(Shape(outline, darker(coat, 0.6)))
    return [
        *antennae,
        *shaded(ellipse(0, 0.1, 0.055, 0.2), coat),
        *shaded(ellipse(0, -0.11, 0.075, 0.1), coat),
        *shaded(ellipse(0, -0.21, 0.05, 0.045), darker(coat, 0.8)),
    ]


def _from_above(species: Species, openness: float) -> list[Shape]:
    hinge, reach = (0.03, -0.13), 0.38 + 0.1 * species.build[0]
    edge = [(reach * 0.55, -0.27), (reach + 0.06, -0.2), (reach, 0.02)]
    fore = smooth([(0.02, -0.15), *edge, (0.2, 0.06), (0.02, 0.02)])
    hind = smooth(polygon("0.02 -0.04, 0.26 -0.05, 0.38 0.1, 0.3 0.33, 0.14 0.37, 0.03 0.2"))
    fore = _turned(fore, 1.15 * (1 - openness), hinge)
    hind = _turned(hind, 0.72 * (1 - openness), hinge)
    hind = shrink_toward(hind, hinge, min(1.0, 0.5 + openness))  # folded like a fan at rest
    look = species.hidden["hindwings"]
    hindwings = [
        *draw_pattern(hind, look, "hindwings", (0.08, 0.06)),
        *draw_pattern(mirrored(hind), look, "hindwings", (-0.08, 0.06)),
    ]
    anchor = fore[: len(fore) // 2].mean(axis=0) * 0.5 + fore.mean(axis=0) * 0.5
    forewings = [
        *draw_pattern(mirrored(fore), species.outside, "", (-anchor[0], anchor[1])),
        *draw_pattern(fore, species.outside, "", (anchor[0], anchor[1])),
    ]
    if openness < 0.4:
        return [*hindwings, *_body(species), *forewings]
    return [*hindwings, *forewings, *_body(species)]


def _upright(species: Species, openness: float) -> list[Shape]:
    wing = smooth(
        polygon(
            "-0.08 0.25, -0.36 0.1, -0.42 -0.18, -0.2 -0.42, 0.14 -0.4, 0.3 -0.2, "
            "0.12 0.05, 0.06 0.25"
        )
    )
    wing = wing * np.array([0.12 + 0.88 * openness, 1.0])
    coat = darker(COLORS[species.outside.color], 0.62)
    back = Shape(wing + np.array([0.05, -0.02]), COLORS[species.outside.color])
    legs = []
    for x in (-0.08, 0.02, 0.1):
        outline = [(x, 0.27), (x + 0.02, 0.27), (x + 0.06, 0.42), (x + 0.045, 0.42)]
        legs.append(Shape(np.array(outline), darker(coat, 0.6)))
    anchor = (float(wing[:, 0].mean()), -0.08)
    part = "undersides of the wings"
    return [
        back,
        *legs,
        *draw_pattern(wing, species.hidden[part], part, anchor),
        *shaded(ellipse(0.02, 0.27, 0.24, 0.055, 0.08), coat),
        *shaded(ellipse(0.26, 0.24, 0.055, 0.05), coat),
    ]


def draw(species: Species, pose: str, openness: float) -> list[Shape]:
    """A moth seen from above, or from the side with its wings closed over its back."""
    if pose == "upright":
        return _upright(species, openness)
    return _from_above(species, openness if pose == "spread" else 0.0)
