"""Fish: the dorsal fin is folded down until raised; the inside of the mouth shows when
it opens.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.world.shapes import Shape, darker, ellipse, smooth
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_pattern


def _mouth(species: Species, openness: float) -> list[Shape]:
    if openness < 0.02:
        return [Shape(np.array([(0.4, 0.05), (0.33, 0.06), (0.4, 0.065)]), (40, 30, 30))]
    wide = 0.03 + 0.1 * openness
    mouth = ellipse(0.37, 0.03, 0.045 + 0.05 * openness, wide, 0.2)
    lips = ellipse(0.37, 0.03, 0.06 + 0.055 * openness, wide + 0.02, 0.2)
    return [
        Shape(lips, darker(COLORS[species.outside.color], 0.6)),
        *draw_pattern(
            mouth, species.hidden["inside of the mouth"], "inside of the mouth", (0.37, 0.03)
        ),
    ]


def _dorsal_fin(species: Species, back: float, openness: float | None) -> list[Shape]:
    """The fin on the `back`; None: folded down."""
    lift = 0.03 + (0.25 * openness if openness is not None else 0.0)
    front = [(-0.26, back + 0.05), (-0.3, back - lift * 0.7)]
    fin = smooth(
        [*front, (-0.1, back - lift * 1.25), (0.12, back - lift * 1.3), (0.2, back + 0.02)]
    )
    if openness is None:
        return [Shape(fin, darker(COLORS[species.outside.color], 0.6))]
    anchor = (-0.04, back - lift * 0.5)
    return draw_pattern(fin, species.hidden["dorsal fin"], "dorsal fin", anchor)


def draw(species: Species, pose: str, openness: float) -> list[Shape]:
    """A fish from the side, facing right."""
    coat, depth = COLORS[species.outside.color], 0.16 + 0.08 * species.build[0]
    tail = smooth([(-0.3, 0.02), (-0.5, -0.16), (-0.44, 0.02), (-0.5, 0.2)], 1)
    body = smooth(
        [
            (-0.36, 0.02),
            (-0.1, -depth),
            (0.2, -depth * 0.95),
            (0.42, 0.02),
            (0.2, depth),
            (-0.1, depth * 0.95),
        ]
    )
    side_fin = Shape(
        smooth([(0.1, 0.06), (-0.06, 0.05), (-0.1, 0.15), (0.02, 0.13)]), darker(coat, 0.65)
    )
    belly_fin = Shape(
        smooth([(-0.04, depth * 0.6), (-0.14, depth + 0.08), (0.06, depth * 0.7)]),
        darker(coat, 0.65),
    )
    gill = Shape(smooth([(0.2, -0.08), (0.17, 0.02), (0.2, 0.12), (0.19, 0.02)]), darker(coat, 0.6))
    eye = [
        Shape(ellipse(0.29, -0.035, 0.03, 0.03, n=14), (245, 240, 220)),
        Shape(ellipse(0.293, -0.035, 0.016, 0.016, n=10), (18, 18, 20)),
    ]
    return [
        *_dorsal_fin(species, 0.02 - depth * 0.62, openness if pose == "fin raised" else None),
        Shape(tail, darker(coat, 0.75)),
        belly_fin,
        *draw_pattern(body, species.outside, "", (0.0, 0.02)),
        gill,
        side_fin,
        *_mouth(species, openness if pose == "mouth open" else 0.0),
        *eye,
    ]
