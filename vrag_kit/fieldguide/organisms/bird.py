"""Birds: the inside of the bill shows when it gapes, the undersides of the wings when
they are raised.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.fieldguide.organisms.kind import HiddenPart, Kind
from vrag_kit.fieldguide.shapes import Shape, darker, ellipse, lighter, shaded, smooth
from vrag_kit.fieldguide.traits import COLORS, Species, patterned


def _bill(species: Species, gape: float) -> list[Shape]:
    length, horn = 0.15 + 0.08 * species.build[0], COLORS["gray"]
    swing = 0.2 * gape
    upper = np.array([(0.28, -0.3), (0.28, -0.24), (0.29 + length, -0.25 - swing)])
    lower = np.array([(0.28, -0.24), (0.27, -0.19), (0.29 + length * 0.92, -0.22 + swing)])
    mouth = smooth(
        [
            (0.25, -0.25),
            (0.28 + length * 0.8, -0.26 - swing * 0.8),
            (0.3 + length * 0.4, -0.235),
            (0.28 + length * 0.75, -0.21 + swing * 0.8),
        ],
        1,
    )
    inside = species.hidden["inside of the bill"]
    return [
        *(patterned(mouth, inside, "inside of the bill", (0.29, -0.235)) if gape > 0.02 else []),
        Shape(upper, darker(horn, 0.55)),
        Shape(lower, darker(horn, 0.45)),
    ]


def draw(species: Species, pose: str, openness: float) -> list[Shape]:
    """A bird on a perch, facing right."""
    coat, plump = COLORS[species.outside.color], 0.05 * species.build[1]
    breast = lighter(coat, 0.45)
    tail = smooth([(-0.2, 0.05), (-0.5, 0.24), (-0.44, 0.32), (-0.12, 0.16)], 1)
    legs = [
        Shape(
            np.array([(x, 0.22), (x + 0.025, 0.22), (x + 0.03, 0.42), (x + 0.01, 0.42)]),
            darker(COLORS["orange"], 0.6),
        )
        for x in (-0.02, 0.08)
    ]
    body = smooth(
        [
            (-0.3, 0.1),
            (-0.12, -0.14),
            (0.14, -0.3),
            (0.26, -0.14),
            (0.24, 0.12 + plump),
            (0.02, 0.28 + plump),
            (-0.2, 0.22),
        ]
    )
    folded = smooth([(0.12, -0.1), (0.14, 0.06), (-0.12, 0.18), (-0.36, 0.16), (-0.18, 0.0)])
    eye = [
        Shape(ellipse(0.22, -0.27, 0.022, 0.022, n=12), (20, 18, 20)),
        Shape(ellipse(0.227, -0.277, 0.007, 0.007, n=6), (250, 250, 250)),
    ]
    raised: list[Shape] = []
    if pose == "wings raised":
        lift = 0.15 + 0.85 * openness
        wing = np.array(
            [
                (0.08, 0.02),
                (0.06, -0.25),
                (-0.04, -0.48),
                (-0.2, -0.5),
                (-0.36, -0.36),
                (-0.28, -0.1),
                (-0.14, 0.06),
            ]
        )
        wing = smooth(np.array([0.0, 0.02]) + (wing - [0.0, 0.02]) * [0.75 + 0.25 * lift, lift])
        raised = patterned(
            wing,
            species.hidden["undersides of the wings"],
            "undersides of the wings",
            (-0.1, 0.02 - 0.22 * lift),
        )
    wing_coat = (
        [] if pose == "wings raised" else patterned(folded, species.outside, "", (-0.08, 0.07))
    )
    return [
        Shape(tail, darker(coat, 0.6)),
        *legs,
        *shaded(body, breast),
        *_bill(species, openness if pose == "gaping" else 0.0),
        *shaded(ellipse(0.2, -0.24, 0.115, 0.105), coat),
        *eye,
        *wing_coat,
        *raised,
    ]


KIND = Kind(
    "bird",
    "Warbler",
    ("Animalia", "Chordata", "Aves", "Passeriformes", "Fenlarkidae"),
    "sky",
    ("perched",),
    (
        HiddenPart(
            "inside of the bill", "gaping", False, "which shows only when the bill is wide open"
        ),
        HiddenPart(
            "undersides of the wings",
            "wings raised",
            True,
            "which are hidden while the wings are folded",
        ),
    ),
    0.35,
    draw,
)
