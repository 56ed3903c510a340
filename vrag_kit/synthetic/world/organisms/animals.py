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
    ellipse,
    lighter,
    mirrored,
    polygon,
    rotation,
    shaded,
    shrink_toward,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_pattern


def _turned(points: Points, angle: float, hinge: tuple[float, float]) -> Points:
    return np.asarray((points - hinge) @ rotation(angle).T + hinge)


def _trunk(species: Species) -> list[Shape]:
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


def _moth_from_above(species: Species, openness: float) -> list[Shape]:
    hinge, reach = (0.03, -0.13), 0.38 + 0.1 * species.build[0]
    edge = [(reach * 0.55, -0.27), (reach + 0.06, -0.2), (reach, 0.02)]
    fore = smooth([(0.02, -0.15), *edge, (0.2, 0.06), (0.02, 0.02)])
    hind = smooth(polygon("0.02 -0.04, 0.26 -0.05, 0.38 0.1, 0.3 0.33, 0.14 0.37, 0.03 0.2"))
    fore = _turned(fore, 1.15 * (1 - openness), hinge)
    hind = _turned(hind, 0.72 * (1 - openness), hinge)
    hind = shrink_toward(hind, hinge, min(1.0, 0.5 + openness))  # folded like a fan at rest
    look = species.hidden["hindwings"]
    hindwings = draw_pattern(hind, look, "hindwings", (0.08, 0.06))
    hindwings += draw_pattern(mirrored(hind), look, "hindwings", (-0.08, 0.06))
    anchor = fore[: len(fore) // 2].mean(axis=0) * 0.5 + fore.mean(axis=0) * 0.5
    forewings = draw_pattern(mirrored(fore), species.outside, "", (-anchor[0], anchor[1]))
    forewings += draw_pattern(fore, species.outside, "", (anchor[0], anchor[1]))
    if openness < 0.4:
        return [*hindwings, *_trunk(species), *forewings]
    return [*hindwings, *forewings, *_trunk(species)]


def _upright(species: Species, openness: float) -> list[Shape]:
    tip = "-0.08 0.25, -0.36 0.1, -0.42 -0.18, -0.2 -0.42"
    wing = smooth(polygon(f"{tip}, 0.14 -0.4, 0.3 -0.2, 0.12 0.05, 0.06 0.25"))
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


def draw_moth(species: Species, pose: str, openness: float) -> list[Shape]:
    """A moth seen from above, or from the side with its wings closed over its back."""
    if pose == "upright":
        return _upright(species, openness)
    return _moth_from_above(species, openness if pose == "spread" else 0.0)


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
    outline = polygon(
        "0.08 0.02, 0.06 -0.25, -0.04 -0.48, -0.2 -0.5, -0.36 -0.36, -0.28 -0.1, -0.14 0.06"
    )
    wing = smooth(shoulder + (outline - shoulder) * [0.75 + 0.25 * lift, lift])
    part = "undersides of the wings"
    return draw_pattern(wing, species.hidden[part], part, (-0.1, 0.02 - 0.22 * lift))


def draw_bird(species: Species, pose: str, openness: float) -> list[Shape]:
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


def _mouth(species: Species, openness: float) -> list[Shape]:
    if openness < 0.02:
        return [Shape(np.array([(0.4, 0.05), (0.33, 0.06), (0.4, 0.065)]), (40, 30, 30))]
    wide = 0.03 + 0.1 * openness
    mouth = ellipse(0.37, 0.03, 0.045 + 0.05 * openness, wide, 0.2)
    lips = ellipse(0.37, 0.03, 0.06 + 0.055 * openness, wide + 0.02, 0.2)
    inside = species.hidden["inside of the mouth"]
    shown = draw_pattern(mouth, inside, "inside of the mouth", (0.37, 0.03))
    return [Shape(lips, darker(COLORS[species.outside.color], 0.6)), *shown]


def _dorsal_fin(species: Species, back: float, openness: float | None) -> list[Shape]:
    """The fin on the `back`; None: folded down."""
    lift = 0.03 + (0.25 * openness if openness is not None else 0.0)
    front = [(-0.26, back + 0.05), (-0.3, back - lift * 0.7), (-0.1, back - lift * 1.25)]
    fin = smooth([*front, (0.12, back - lift * 1.3), (0.2, back + 0.02)])
    if openness is None:
        return [Shape(fin, darker(COLORS[species.outside.color], 0.6))]
    anchor = (-0.04, back - lift * 0.5)
    return draw_pattern(fin, species.hidden["dorsal fin"], "dorsal fin", anchor)


def draw_fish(species: Species, pose: str, openness: float) -> list[Shape]:
    """A fish from the side, facing right."""
    coat, depth = COLORS[species.outside.color], 0.16 + 0.08 * species.build[0]
    tail = smooth([(-0.3, 0.02), (-0.5, -0.16), (-0.44, 0.02), (-0.5, 0.2)], 1)
    back = [(-0.36, 0.02), (-0.1, -depth), (0.2, -depth * 0.95)]
    body = smooth([*back, (0.42, 0.02), (0.2, depth), (-0.1, depth * 0.95)])
    side_fin = smooth(polygon("0.1 0.06, -0.06 0.05, -0.1 0.15, 0.02 0.13"))
    belly_fin = smooth([(-0.04, depth * 0.6), (-0.14, depth + 0.08), (0.06, depth * 0.7)])
    gill = smooth(polygon("0.2 -0.08, 0.17 0.02, 0.2 0.12, 0.19 0.02"))
    return [
        *_dorsal_fin(species, 0.02 - depth * 0.62, openness if pose == "fin raised" else None),
        Shape(tail, darker(coat, 0.75)),
        Shape(belly_fin, darker(coat, 0.65)),
        *draw_pattern(body, species.outside, "", (0.0, 0.02)),
        Shape(gill, darker(coat, 0.6)),
        Shape(side_fin, darker(coat, 0.65)),
        *_mouth(species, openness if pose == "mouth open" else 0.0),
        Shape(ellipse(0.29, -0.035, 0.03, 0.03, n=14), (245, 240, 220)),
        Shape(ellipse(0.293, -0.035, 0.016, 0.016, n=10), (18, 18, 20)),
    ]


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
    lower = [(0.4, -0.02 + drop * 0.8), (0.3, 0.0 + drop), (0.14, -0.01 + drop * 0.75)]
    throat = smooth([(0.36, -0.07), *lower, (0.1, 0.03)])
    look, anchor = species.hidden["throat fan"], (0.28, 0.4 * drop)
    dewlap = draw_pattern(throat, look, "throat fan", anchor) if fan > 0.02 else []
    return [
        *shaded(tail, coat),
        *legs,
        *dewlap,
        *draw_pattern(body, species.outside, "", (0.02, 0.0)),
        *shaded(head, coat),
        Shape(ellipse(0.33, -0.14, 0.02, 0.02, n=12), (240, 210, 90)),
        Shape(ellipse(0.333, -0.14, 0.01, 0.011, n=8), (15, 15, 15)),
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
    left = [(-0.05, -0.22), (-girth, -0.1), (-girth, 0.1), (-0.04, 0.24)]
    body = smooth([*left, (0.04, 0.24), (girth, 0.1), (girth, -0.1), (0.05, -0.22)])
    skull = polygon("-0.07 -0.2, -0.085 -0.3, -0.03 -0.42, 0.03 -0.42, 0.085 -0.3, 0.07 -0.2")
    shapes = [Shape(outline, darker(coat, 0.62)) for outline in limbs]
    shapes += [*shaded(tail, coat), *shaded(smooth(skull), coat)]
    if belly is None:
        eyes = [Shape(ellipse(x, -0.32, 0.018, 0.022, n=10), (20, 18, 16)) for x in (-0.06, 0.06)]
        return [*shapes, *draw_pattern(body, species.outside, "", (0.0, 0.0)), *eyes]
    shown = body * [0.15 + 0.75 * belly, 0.92] + [0.7 * girth * (1 - belly), 0.0]
    jaw = smooth(polygon("-0.05 -0.27, 0.0 -0.38, 0.05 -0.27, 0.0 -0.35"))
    anchor = (float(shown[:, 0].mean()), 0.0)
    under = draw_pattern(shown, species.hidden["belly"], "belly", anchor)
    return [*shapes, Shape(jaw, darker(coat, 0.5)), *shaded(body, coat), *under]


def draw_lizard(species: Species, pose: str, openness: float) -> list[Shape]:
    """A lizard from the side, from above, or from below."""
    if pose in ("above", "below"):
        return _flat(species, openness if pose == "below" else None)
    return _side(species, openness if pose == "display" else 0.0)
