"""Moths: forewings cover the hindwings at rest; the underside shows when the wings close upright.
Birds: the inside of the bill shows when it gapes, the undersides of the wings when they are raised.
Fish: the dorsal fin is folded down until raised; the inside of the mouth shows when it opens.
Lizards: the throat fan shows in display, the belly from below.
"""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Points,
    Shape,
    darker,
    disc,
    ellipse,
    lighter,
    mirrored,
    moved,
    polygon,
    rotation,
    shaded,
    shrink_toward,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_part

_UNDERSIDES = "undersides of the wings"
_BLACK = (20, 18, 20)


def _turned(points: Points, angle: float, hinge: tuple[float, float]) -> Points:
    return np.asarray((points - hinge) @ rotation(angle).T + hinge)


def _trunk(species: Species) -> list[Shape]:
    coat = darker(species.coat, 0.62)
    shapes = []
    for x in (-0.1, 0.1):
        antenna = smooth([(0, -0.2), (x, -0.36), (x * 1.5, -0.42), (x * 0.8, -0.35)])
        shapes.append(Shape(antenna, darker(coat, 0.6)))
    shapes += shaded(ellipse(0, 0.1, 0.055, 0.2), coat)
    shapes += shaded(ellipse(0, -0.11, 0.075, 0.1), coat)
    shapes += shaded(ellipse(0, -0.21, 0.05, 0.045), darker(coat, 0.8))
    return shapes


def _moth_from_above(species: Species, openness: float) -> list[Shape]:
    hinge = (0.03, -0.13)
    reach = 0.38 + 0.1 * species.build[0]
    edge = [(reach * 0.55, -0.27), (reach + 0.06, -0.2), (reach, 0.02)]
    fore = smooth([(0.02, -0.15), *edge, (0.2, 0.06), (0.02, 0.02)])
    fore = _turned(fore, 1.15 * (1 - openness), hinge)
    hind = smooth(polygon("0.02 -0.04, 0.26 -0.05, 0.38 0.1, 0.3 0.33, 0.14 0.37, 0.03 0.2"))
    hind = _turned(hind, 0.72 * (1 - openness), hinge)
    hind = shrink_toward(hind, hinge, min(1.0, 0.5 + openness))  # folded like a fan at rest
    hindwings = draw_part(species, "hindwings", hind, (0.08, 0.06))
    hindwings += draw_part(species, "hindwings", mirrored(hind), (-0.08, 0.06))
    x, y = fore[: len(fore) // 2].mean(axis=0) * 0.5 + fore.mean(axis=0) * 0.5
    forewings = draw_part(species, "", mirrored(fore), (-x, y))
    forewings += draw_part(species, "", fore, (x, y))
    if openness < 0.4:
        return [*hindwings, *_trunk(species), *forewings]
    return [*hindwings, *forewings, *_trunk(species)]


def _upright(species: Species, openness: float) -> list[Shape]:
    wing = smooth(
        polygon(
            "-0.08 0.25, -0.36 0.1, -0.42 -0.18, -0.2 -0.42, 0.14 -0.4, 0.3 -0.2, 0.12 0.05,"
            " 0.06 0.25"
        )
    )
    wing = wing * (0.12 + 0.88 * openness, 1.0)
    coat = darker(species.coat, 0.62)
    shapes = [Shape(moved(wing, 0.05, -0.02), species.coat)]
    for x in (-0.08, 0.02, 0.1):
        leg = polygon("0 0.27, 0.02 0.27, 0.06 0.42, 0.045 0.42")
        shapes.append(Shape(moved(leg, x, 0), darker(coat, 0.6)))
    shapes += draw_part(species, _UNDERSIDES, wing, (wing[:, 0].mean(), -0.08))
    shapes += shaded(ellipse(0.02, 0.27, 0.24, 0.055, 0.08), coat)
    shapes += shaded(ellipse(0.26, 0.24, 0.055, 0.05), coat)
    return shapes


def draw_moth(species: Species, pose: str, openness: float) -> list[Shape]:
    """A moth seen from above, or from the side with its wings closed over its back."""
    if pose == "upright":
        return _upright(species, openness)
    return _moth_from_above(species, openness if pose == "spread" else 0.0)


def _bill(species: Species, gape: float) -> list[Shape]:
    length = 0.15 + 0.08 * species.build[0]
    swing = 0.2 * gape
    upper = np.array([(0.28, -0.3), (0.28, -0.24), (0.29 + length, -0.25 - swing)])
    lower = np.array([(0.28, -0.24), (0.27, -0.19), (0.29 + length * 0.92, -0.22 + swing)])
    horn = COLORS["gray"]
    halves = [Shape(upper, darker(horn, 0.55)), Shape(lower, darker(horn, 0.45))]
    if gape <= 0.02:
        return halves
    top = (0.28 + length * 0.8, -0.26 - swing * 0.8)
    corner = (0.3 + length * 0.4, -0.235)
    bottom = (0.28 + length * 0.75, -0.21 + swing * 0.8)
    mouth = smooth([(0.25, -0.25), top, corner, bottom], 1)
    return [*draw_part(species, "inside of the bill", mouth, (0.29, -0.235)), *halves]


def _legs() -> list[Shape]:
    color = darker(COLORS["orange"], 0.6)
    leg = polygon("0 0.22, 0.025 0.22, 0.03 0.42, 0.01 0.42")
    return [Shape(moved(leg, x, 0), color) for x in (-0.02, 0.08)]


def _folded_wing(species: Species) -> list[Shape]:
    wing = smooth(polygon("0.12 -0.1, 0.14 0.06, -0.12 0.18, -0.36 0.16, -0.18 0.0"))
    return draw_part(species, "", wing, (-0.08, 0.07))


def _raised_wing(species: Species, openness: float) -> list[Shape]:
    lift = 0.15 + 0.85 * openness
    shoulder = np.array([0.0, 0.02])
    outline = polygon(
        "0.08 0.02, 0.06 -0.25, -0.04 -0.48, -0.2 -0.5, -0.36 -0.36, -0.28 -0.1, -0.14 0.06"
    )
    wing = smooth(shoulder + (outline - shoulder) * (0.75 + 0.25 * lift, lift))
    return draw_part(species, _UNDERSIDES, wing, (-0.1, 0.02 - 0.22 * lift))


def draw_bird(species: Species, pose: str, openness: float) -> list[Shape]:
    """A bird on a perch, facing right."""
    coat = species.coat
    plump = 0.05 * species.build[1]
    tail = smooth(polygon("-0.2 0.05, -0.5 0.24, -0.44 0.32, -0.12 0.16"), 1)
    belly = [(0.24, 0.12 + plump), (0.02, 0.28 + plump), (-0.2, 0.22)]
    body = smooth([(-0.3, 0.1), (-0.12, -0.14), (0.14, -0.3), (0.26, -0.14), *belly])
    shapes = [Shape(tail, darker(coat, 0.6)), *_legs(), *shaded(body, lighter(coat, 0.45))]
    shapes += _bill(species, openness if pose == "gaping" else 0.0)
    shapes += shaded(ellipse(0.2, -0.24, 0.115, 0.105), coat)
    shapes += [disc(0.22, -0.27, 0.022, _BLACK), disc(0.227, -0.277, 0.007, (250, 250, 250), 6)]
    if pose == "wings raised":
        return [*shapes, *_raised_wing(species, openness)]
    return [*shapes, *_folded_wing(species)]


def _mouth(species: Species, openness: float) -> list[Shape]:
    if openness < 0.02:
        return [Shape(polygon("0.4 0.05, 0.33 0.06, 0.4 0.065"), (40, 30, 30))]
    wide = 0.03 + 0.1 * openness
    mouth = ellipse(0.37, 0.03, 0.045 + 0.05 * openness, wide, 0.2)
    lips = ellipse(0.37, 0.03, 0.06 + 0.055 * openness, wide + 0.02, 0.2)
    inside = draw_part(species, "inside of the mouth", mouth, (0.37, 0.03))
    return [Shape(lips, darker(species.coat, 0.6)), *inside]


def _dorsal_fin(species: Species, back: float, openness: float | None) -> list[Shape]:
    """The fin on the `back`; None: folded down."""
    lift = 0.03 + (0.25 * openness if openness is not None else 0.0)
    front = [(-0.26, back + 0.05), (-0.3, back - lift * 0.7), (-0.1, back - lift * 1.25)]
    fin = smooth([*front, (0.12, back - lift * 1.3), (0.2, back + 0.02)])
    if openness is None:
        return [Shape(fin, darker(species.coat, 0.6))]
    return draw_part(species, "dorsal fin", fin, (-0.04, back - lift * 0.5))


def draw_fish(species: Species, pose: str, openness: float) -> list[Shape]:
    """A fish from the side, facing right."""
    coat = species.coat
    depth = 0.16 + 0.08 * species.build[0]
    tail = smooth(polygon("-0.3 0.02, -0.5 -0.16, -0.44 0.02, -0.5 0.2"), 1)
    back = [(-0.36, 0.02), (-0.1, -depth), (0.2, -depth * 0.95)]
    body = smooth([*back, (0.42, 0.02), (0.2, depth), (-0.1, depth * 0.95)])
    side_fin = smooth(polygon("0.1 0.06, -0.06 0.05, -0.1 0.15, 0.02 0.13"))
    belly_fin = smooth([(-0.04, depth * 0.6), (-0.14, depth + 0.08), (0.06, depth * 0.7)])
    gill = smooth(polygon("0.2 -0.08, 0.17 0.02, 0.2 0.12, 0.19 0.02"))
    shapes = _dorsal_fin(species, 0.02 - depth * 0.62, openness if pose == "fin raised" else None)
    shapes += [Shape(tail, darker(coat, 0.75)), Shape(belly_fin, darker(coat, 0.65))]
    shapes += draw_part(species, "", body, (0.0, 0.02))
    shapes += [Shape(gill, darker(coat, 0.6)), Shape(side_fin, darker(coat, 0.65))]
    shapes += _mouth(species, openness if pose == "mouth open" else 0.0)
    shapes.append(disc(0.29, -0.035, 0.03, (245, 240, 220), 14))
    shapes.append(disc(0.293, -0.035, 0.016, (18, 18, 20), 10))
    return shapes


def _throat(species: Species, fan: float) -> list[Shape]:
    if fan <= 0.02:
        return []
    drop = 0.34 * fan
    lower = [(0.4, -0.02 + drop * 0.8), (0.3, 0.0 + drop), (0.14, -0.01 + drop * 0.75)]
    throat = smooth([(0.36, -0.07), *lower, (0.1, 0.03)])
    return draw_part(species, "throat fan", throat, (0.28, 0.4 * drop))


def _side(species: Species, fan: float) -> list[Shape]:
    coat = species.coat
    tail = smooth(polygon("-0.16 -0.02, -0.34 0.02, -0.52 0.16, -0.5 0.19, -0.3 0.12, -0.14 0.1"))
    body = smooth(polygon("-0.24 0.02, -0.1 -0.1, 0.14 -0.12, 0.26 -0.04, 0.2 0.1, -0.1 0.13"))
    head = smooth(polygon("0.16 -0.12, 0.3 -0.2, 0.46 -0.12, 0.45 -0.06, 0.28 -0.01, 0.16 0.02"))
    shapes = shaded(tail, coat)
    for x, lean in ((-0.17, 1.0), (0.1, 1.0), (-0.1, -0.6), (0.17, 0.5)):
        foot = [(x + 0.16 * lean, 0.27), (x + 0.08 * lean, 0.27)]
        front = (x + 0.12 * lean, 0.17)
        back = (x + 0.04 * lean, 0.16)
        leg = smooth([(x, 0.04), (x + 0.06, 0.05), front, *foot, back], 1)
        shapes.append(Shape(leg, darker(coat, 0.62)))
    shapes += _throat(species, fan)
    shapes += draw_part(species, "", body, (0.02, 0.0))
    shapes += shaded(head, coat)
    shapes.append(disc(0.33, -0.14, 0.02, (240, 210, 90)))
    shapes.append(Shape(ellipse(0.333, -0.14, 0.01, 0.011, n=8), (15, 15, 15)))
    return shapes


def _limb(side: int, y: float, turn: int) -> Points:
    """A leg to the left (`side` −1) or right, seen from above; `turn` −1 points forward."""
    inner = 0.05 * side
    foot = [(0.28 * side, y + 0.1 * turn), (0.24 * side, y + 0.12 * turn)]
    knee = (0.19 * side, y + 0.01)
    return smooth([(inner, y), (0.22 * side, y - 0.04 * turn), *foot, knee, (inner, y + 0.05)], 1)


def _flat(species: Species, belly: float | None) -> list[Shape]:
    """Top view; with `belly` the same silhouette from below, rolled so that this share
    of the belly shows.
    """
    coat = species.coat
    girth = 0.1 + 0.05 * species.build[1]
    tail = smooth(polygon("-0.05 0.18, 0.05 0.18, 0.05 0.34, 0.14 0.5, 0.11 0.52, 0.0 0.36"))
    left = [(-0.05, -0.22), (-girth, -0.1), (-girth, 0.1), (-0.04, 0.24)]
    body = smooth([*left, (0.04, 0.24), (girth, 0.1), (girth, -0.1), (0.05, -0.22)])
    skull = polygon("-0.07 -0.2, -0.085 -0.3, -0.03 -0.42, 0.03 -0.42, 0.085 -0.3, 0.07 -0.2")
    limbs = [_limb(-1, -0.12, -1), _limb(-1, 0.12, 1), _limb(1, -0.12, -1), _limb(1, 0.12, 1)]
    shapes = [Shape(limb, darker(coat, 0.62)) for limb in limbs]
    shapes += [*shaded(tail, coat), *shaded(smooth(skull), coat)]
    if belly is None:
        eyes = [Shape(ellipse(x, -0.32, 0.018, 0.022, n=10), (20, 18, 16)) for x in (-0.06, 0.06)]
        return [*shapes, *draw_part(species, "", body, (0.0, 0.0)), *eyes]
    jaw = smooth(polygon("-0.05 -0.27, 0.0 -0.38, 0.05 -0.27, 0.0 -0.35"))
    shapes += [Shape(jaw, darker(coat, 0.5)), *shaded(body, coat)]
    under = body * (0.15 + 0.75 * belly, 0.92) + (0.7 * girth * (1 - belly), 0.0)
    return [*shapes, *draw_part(species, "belly", under, (under[:, 0].mean(), 0.0))]


def draw_lizard(species: Species, pose: str, openness: float) -> list[Shape]:
    """A lizard from the side, from above, or from below."""
    if pose in ("above", "below"):
        return _flat(species, openness if pose == "below" else None)
    return _side(species, openness if pose == "display" else 0.0)
