"""Lizards: the throat fan shows in display, the belly from below."""

from __future__ import annotations

from vrag_kit.synthetic.world.shapes import Points, Shape, darker, ellipse, polygon, shaded, smooth
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_pattern


def _side(species: Species, fan: float) -> list[Shape]:
    coat = COLORS[species.outside.color]
    tail = smooth(polygon("-0.16 -0.02, -0.34 0.02, -0.52 0.16, -0.5 0.19, -0.3 0.12, -0.14 0.1"))
    body = smooth(polygon("-0.24 0.02, -0.1 -0.1, 0.14 -0.12, 0.26 -0.04, 0.2 0.1, -0.1 0.13"))
    head = smooth(polygon("0.16 -0.12, 0.3 -0.2, 0.46 -0.12, 0.45 -0.06, 0.28 -0.01, 0.16 0.02"))
    legs = []
    for x, lean in ((-0.17, 1.0), (0.1, 1.0), (-0.1, -0.6), (0.17, 0.5)):
        foot = [(x + 0.16 * lean, 0.27), (x + 0.08 * lean, 0.27)]
        front, back = (x + 0.12 * lean, 0.17), (x + 0.04 * lean, 0.16)
        outline = smooth([(x, 0.04), (x + 0.06, 0.05), front, *foot, back], 1)
        legs.append(Shape(outline, darker(coat, 0.62)))
    drop = 0.34 * fan
    throat = smooth(
        [
            (0.36, -0.07),
            (0.4, -0.02 + drop * 0.8),
            (0.3, 0.0 + drop),
            (0.14, -0.01 + drop * 0.75),
            (0.1, 0.03),
        ]
    )
    eye = [
        Shape(ellipse(0.33, -0.14, 0.02, 0.02, n=12), (240, 210, 90)),
        Shape(ellipse(0.333, -0.14, 0.01, 0.011, n=8), (15, 15, 15)),
    ]
    dewlap = (
        draw_pattern(throat, species.hidden["throat fan"], "throat fan", (0.28, 0.4 * drop))
        if fan > 0.02
        else []
    )
    return [
        *shaded(tail, coat),
        *legs,
        *dewlap,
        *draw_pattern(body, species.outside, "", (0.02, 0.0)),
        *shaded(head, coat),
        *eye,
    ]


def _limb(side: int, y: float, turn: int) -> Points:
    """A leg to the left (`side` −1) or right, seen from above; `turn` −1 points forward."""
    inner, outer = 0.05 * side, 0.22 * side
    foot = [(0.28 * side, y + 0.1 * turn), (0.24 * side, y + 0.12 * turn)]
    knee = (0.19 * side, y + 0.01)
    return smooth([(inner, y), (outer, y - 0.04 * turn), *foot, knee, (inner, y + 0.05)], 1)


def _flat(species: Species, belly: float | None) -> list[Shape]:
    """Top view; with `belly` the same silhouette from below, rolled so that this share
    of the belly shows.
    """
    coat, girth = COLORS[species.outside.color], 0.1 + 0.05 * species.build[1]
    limbs = [_limb(-1, -0.12, -1), _limb(-1, 0.12, 1), _limb(1, -0.12, -1), _limb(1, 0.12, 1)]
    tail = smooth(polygon("-0.05 0.18, 0.05 0.18, 0.05 0.34, 0.14 0.5, 0.11 0.52, 0.0 0.36"))
    body = smooth(
        [
            (-0.05, -0.22),
            (-girth, -0.1),
            (-girth, 0.1),
            (-0.04, 0.24),
            (0.04, 0.24),
            (girth, 0.1),
            (girth, -0.1),
            (0.05, -0.22),
        ]
    )
    head = smooth(
        polygon("-0.07 -0.2, -0.085 -0.3, -0.03 -0.42, 0.03 -0.42, 0.085 -0.3, 0.07 -0.2")
    )
    shapes = [
        *(Shape(outline, darker(coat, 0.62)) for outline in limbs),
        *shaded(tail, coat),
        *shaded(head, coat),
    ]
    if belly is None:
        eyes = [Shape(ellipse(x, -0.32, 0.018, 0.022, n=10), (20, 18, 16)) for x in (-0.06, 0.06)]
        return [*shapes, *draw_pattern(body, species.outside, "", (0.0, 0.0)), *eyes]
    shown = body * [0.15 + 0.75 * belly, 0.92] + [0.7 * girth * (1 - belly), 0.0]
    jaw = Shape(
        smooth([(-0.05, -0.27), (0.0, -0.38), (0.05, -0.27), (0.0, -0.35)]), darker(coat, 0.5)
    )
    return [
        *shapes,
        jaw,
        *shaded(body, coat),
        *draw_pattern(shown, species.hidden["belly"], "belly", (float(shown[:, 0].mean()), 0.0)),
    ]


def draw(species: Species, pose: str, openness: float) -> list[Shape]:
    """A lizard from the side, from above, or from below."""
    if pose in ("above", "below"):
        return _flat(species, openness if pose == "below" else None)
    return _side(species, openness if pose == "display" else 0.0)
