"""Birds: the inside of the bill shows when it gapes, the undersides of the wings when
they are raised.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.world.shapes import Shape, darker, ellipse, lighter, polygon, shaded, smooth
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_pattern


def _bill(species: Species, gape: float) -> list[Shape]:
    length, horn = 0.15 + 0.08 * species.build[0], COLORS["gray"]
    swing = 0.2 * gape
    upper = np.array([(0.28, -0.3), (0.28, -0.24), (0.29 + length, -0.25 - swing)])
    lower = np.array([(0.28, -0.24), (0.27, -0.19), (0.29 + length * 0.92, -0.22 + swing)])
    halves = [Shape(upper, darker(horn, 0.55)), Shape(lower, darker(horn, 0.45))]
    if gape <= 0.02:
        return halves
    top = (0.28 + length * 0.8, -0.26 - swing * 0.8)
    corner = (0.3 + length * 0.4, -0.235)
    bottom = (0.28 + length * 0.75, -0.21 + swing * 0.8)
    mouth = smooth([(0.25, -0.25), top, corner, bottom], 1)
    inside = species.hidden["inside of the bill"]
    return [*draw_pattern(mouth, inside, "inside of the bill", (0.29, -0.235)), *halves]


def _legs() -> list[Shape]:
    color = darker(COLORS["orange"], 0.6)
    legs = []
    for x in (-0.02, 0.08):
        outline = [(x, 0.22), (x + 0.025, 0.22), (x + 0.03, 0.42), (x + 0.01, 0.42)]
        legs.append(Shape(np.array(outline), color))
    return legs


def _folded_wing(species: Species) -> list[Shape]:
    outline = polygon("0.12 -0.1, 0.14 0.06, -0.12 0.18, -0.36 0.16, -0.18 0.0")
    return draw_pattern(smooth(outline), species.outside, "", (-0.08, 0.07))


def _raised_wing(species: Species, openness: float) -> list[Shape]:
    lift = 0.15 + 0.85 * openness
    shoulder = np.array([0.0, 0.02])
    outline = np.array(
        polygon(
            "0.08 0.02, 0.06 -0.25, -0.04 -0.48, -0.2 -0.5, -0.36 -0.36, -0.28 -0.1, -0.14 0.06"
        )
    )
    wing = smooth(shoulder + (outline - shoulder) * [0.75 + 0.25 * lift, lift])
    part = "undersides of the wings"
    return draw_pattern(wing, species.hidden[part], part, (-0.1, 0.02 - 0.22 * lift))


def draw(species: Species, pose: str, openness: float) -> list[Shape]:
    """A bird on a perch, facing right."""
    coat, plump = COLORS[species.outside.color], 0.05 * species.build[1]
    tail = smooth([(-0.2, 0.05), (-0.5, 0.24), (-0.44, 0.32), (-0.12, 0.16)], 1)
    belly = [(0.24, 0.12 + plump), (0.02, 0.28 + plump), (-0.2, 0.22)]
    body = smooth([(-0.3, 0.1), (-0.12, -0.14), (0.14, -0.3), (0.26, -0.14), *belly])
    bill = _bill(species, openness if pose == "gaping" else 0.0)
    head = shaded(ellipse(0.2, -0.24, 0.115, 0.105), coat)
    eye = Shape(ellipse(0.22, -0.27, 0.022, 0.022, n=12), (20, 18, 20))
    glint = Shape(ellipse(0.227, -0.277, 0.007, 0.007, n=6), (250, 250, 250))
    raised = pose == "wings raised"
    wing = _raised_wing(species, openness) if raised else _folded_wing(species)
    trunk = [Shape(tail, darker(coat, 0.6)), *_legs(), *shaded(body, lighter(coat, 0.45))]
    return [*trunk, *bill, *head, eye, glint, *wing]
