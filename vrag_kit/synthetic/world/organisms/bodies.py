"""How organisms are drawn, as shapes from back to front that span about 1.

Moths: forewings cover the hindwings at rest; the underside shows when the wings close upright.
Birds: the inside of the bill shows when it gapes, the undersides of the wings when they are raised.
Fish: the dorsal fin is folded down until raised; the inside of the mouth shows when it opens.
Lizards: the throat fan shows in display, the belly from below.
Flowers: stamen tips show when the flower opens toward you, the undersides of the leaves in wind.
Mushrooms: gills show from below, the flesh when the cap is cut in half.

Young organisms, a caterpillar, a chick in its nest, a bud, a button, fry and a hatchling, show a
pale hint of the grown one's outer color, and none of its pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from vrag_kit.synthetic.world.shapes import (
    Color,
    Points,
    Shape,
    darker,
    direction,
    disc,
    ellipse,
    filled,
    lighter,
    moved,
    polygon,
    rgb,
    rotation,
    shaded,
    shrink_toward,
    smooth,
)
from vrag_kit.synthetic.world.traits import COLORS, Species, draw_part

_UNDERSIDES = "undersides of the wings"


def _turned(points: Points, angle: float, hinge: tuple[float, float]) -> Points:
    return np.asarray((points - hinge) @ rotation(angle).T + hinge)


def _trunk(species: Species) -> Iterator[Shape]:
    coat = darker(species.coat, 0.62)
    antenna = polygon("0 -0.2, 1 -0.36, 1.5 -0.42, 0.8 -0.35")
    for x in (-0.1, 0.1):
        yield Shape(smooth(antenna * (x, 1)), darker(coat, 0.6))
    yield from shaded(ellipse(0, 0.1, 0.055, 0.2), coat)
    yield from shaded(ellipse(0, -0.11, 0.075, 0.1), coat)
    yield from shaded(ellipse(0, -0.21, 0.05, 0.045), darker(coat, 0.8))


def _moth_from_above(species: Species, openness: float) -> Iterator[Shape]:
    hinge = (0.03, -0.13)
    reach = 0.38 + 0.1 * species.build[0]
    edge = [(reach * 0.55, -0.27), (reach + 0.06, -0.2), (reach, 0.02)]
    fore = smooth([(0.02, -0.15), *edge, (0.2, 0.06), (0.02, 0.02)])
    fore = _turned(fore, 1.15 * (1 - openness), hinge)
    hind = smooth(polygon("0.02 -0.04, 0.26 -0.05, 0.38 0.1, 0.3 0.33, 0.14 0.37, 0.03 0.2"))
    hind = _turned(hind, 0.72 * (1 - openness), hinge)
    hind = shrink_toward(hind, hinge, min(1.0, 0.5 + openness))  # folded like a fan at rest
    yield from draw_part(species, "hindwings", hind, (0.08, 0.06))
    yield from draw_part(species, "hindwings", hind * (-1, 1), (-0.08, 0.06))
    if openness < 0.4:
        yield from _trunk(species)
    x, y = fore[: len(fore) // 2].mean(axis=0) * 0.5 + fore.mean(axis=0) * 0.5
    yield from draw_part(species, "", fore * (-1, 1), (-x, y))
    yield from draw_part(species, "", fore, (x, y))
    if openness >= 0.4:
        yield from _trunk(species)


_SHUT = "-0.08 0.25, -0.36 0.1, -0.42 -0.18, -0.2 -0.42, 0.14 -0.4, 0.3 -0.2, 0.12 0.05, 0.06 0.25"
"""A moth's wings, closed over its back."""


def _upright(species: Species, openness: float) -> Iterator[Shape]:
    wing = smooth(polygon(_SHUT)) * (0.12 + 0.88 * openness, 1.0)
    coat = darker(species.coat, 0.62)
    yield Shape(moved(wing, 0.05, -0.02), species.coat)
    leg = polygon("0 0.27, 0.02 0.27, 0.06 0.42, 0.045 0.42")
    for x in (-0.08, 0.02, 0.1):
        yield Shape(moved(leg, x, 0), darker(coat, 0.6))
    yield from draw_part(species, _UNDERSIDES, wing, (wing[:, 0].mean(), -0.08))
    yield from shaded(ellipse(0.02, 0.27, 0.24, 0.055, 0.08), coat)
    yield from shaded(ellipse(0.26, 0.24, 0.055, 0.05), coat)


def draw_moth(species: Species, pose: str, openness: float) -> Iterator[Shape]:
    """A moth seen from above, or from the side with its wings closed over its back."""
    if pose == "upright":
        return _upright(species, openness)
    return _moth_from_above(species, openness if pose == "spread" else 0.0)


def _bill(species: Species, gape: float) -> Iterator[Shape]:
    length = 0.15 + 0.08 * species.build[0]
    swing = 0.2 * gape
    if gape > 0.02:
        top = (0.28 + length * 0.8, -0.26 - swing * 0.8)
        corner = (0.3 + length * 0.4, -0.235)
        bottom = (0.28 + length * 0.75, -0.21 + swing * 0.8)
        mouth = smooth([(0.25, -0.25), top, corner, bottom], 1)
        yield from draw_part(species, "inside of the bill", mouth, (0.29, -0.235))
    upper = np.array([(0.28, -0.3), (0.28, -0.24), (0.29 + length, -0.25 - swing)])
    lower = np.array([(0.28, -0.24), (0.27, -0.19), (0.29 + length * 0.92, -0.22 + swing)])
    yield Shape(upper, darker(COLORS["gray"], 0.55))
    yield Shape(lower, darker(COLORS["gray"], 0.45))


_RAISED = "0.08 0.02, 0.06 -0.25, -0.04 -0.48, -0.2 -0.5, -0.36 -0.36, -0.28 -0.1, -0.14 0.06"
"""A bird's wing, raised."""


def _raised_wing(species: Species, openness: float) -> Iterator[Shape]:
    lift = 0.15 + 0.85 * openness
    shoulder = np.array([0.0, 0.02])
    wing = smooth(shoulder + (polygon(_RAISED) - shoulder) * (0.75 + 0.25 * lift, lift))
    return draw_part(species, _UNDERSIDES, wing, (-0.1, 0.02 - 0.22 * lift))


def draw_bird(species: Species, pose: str, openness: float) -> Iterator[Shape]:
    """A bird on a perch, facing right."""
    coat = species.coat
    plump = 0.05 * species.build[1]
    belly = [(0.24, 0.12 + plump), (0.02, 0.28 + plump), (-0.2, 0.22)]
    body = smooth([(-0.3, 0.1), (-0.12, -0.14), (0.14, -0.3), (0.26, -0.14), *belly])
    leg = polygon("0 0.22, 0.025 0.22, 0.03 0.42, 0.01 0.42")
    yield filled("-0.2 0.05, -0.5 0.24, -0.44 0.32, -0.12 0.16", darker(coat, 0.6), 1)  # tail
    for x in (-0.02, 0.08):
        yield Shape(moved(leg, x, 0), darker(COLORS["orange"], 0.6))
    yield from shaded(body, lighter(coat, 0.45))
    yield from _bill(species, openness if pose == "gaping" else 0.0)
    yield from shaded(ellipse(0.2, -0.24, 0.115, 0.105), coat)
    yield disc(0.22, -0.27, 0.022, (20, 18, 20))
    yield disc(0.227, -0.277, 0.007, (250, 250, 250), 6)
    if pose == "wings raised":
        yield from _raised_wing(species, openness)
    else:
        wing = smooth(polygon("0.12 -0.1, 0.14 0.06, -0.12 0.18, -0.36 0.16, -0.18 0.0"))
        yield from draw_part(species, "", wing, (-0.08, 0.07))


def _mouth(species: Species, openness: float) -> Iterator[Shape]:
    if openness < 0.02:
        yield filled("0.4 0.05, 0.33 0.06, 0.4 0.065", (40, 30, 30), 0)
        return
    wide = 0.03 + 0.1 * openness
    mouth = ellipse(0.37, 0.03, 0.045 + 0.05 * openness, wide, 0.2)
    lips = ellipse(0.37, 0.03, 0.06 + 0.055 * openness, wide + 0.02, 0.2)
    yield Shape(lips, darker(species.coat, 0.6))
    yield from draw_part(species, "inside of the mouth", mouth, (0.37, 0.03))


def _dorsal_fin(species: Species, back: float, openness: float | None) -> Iterator[Shape]:
    """The fin on the `back`; None: folded down."""
    lift = 0.03 + (0.25 * openness if openness is not None else 0.0)
    front = [(-0.26, back + 0.05), (-0.3, back - lift * 0.7), (-0.1, back - lift * 1.25)]
    fin = smooth([*front, (0.12, back - lift * 1.3), (0.2, back + 0.02)])
    if openness is None:
        yield Shape(fin, darker(species.coat, 0.6))
    else:
        yield from draw_part(species, "dorsal fin", fin, (-0.04, back - lift * 0.5))


def draw_fish(species: Species, pose: str, openness: float) -> Iterator[Shape]:
    """A fish from the side, facing right."""
    coat = species.coat
    depth = 0.16 + 0.08 * species.build[0]
    back = [(-0.36, 0.02), (-0.1, -depth), (0.2, -depth * 0.95)]
    body = smooth([*back, (0.42, 0.02), (0.2, depth), (-0.1, depth * 0.95)])
    belly_fin = smooth([(-0.04, depth * 0.6), (-0.14, depth + 0.08), (0.06, depth * 0.7)])
    yield from _dorsal_fin(species, 0.02 - depth * 0.62, openness if pose == "fin raised" else None)
    yield filled("-0.3 0.02, -0.5 -0.16, -0.44 0.02, -0.5 0.2", darker(coat, 0.75), 1)  # tail
    yield Shape(belly_fin, darker(coat, 0.65))
    yield from draw_part(species, "", body, (0.0, 0.02))
    yield filled("0.2 -0.08, 0.17 0.02, 0.2 0.12, 0.19 0.02", darker(coat, 0.6))  # gill
    yield filled("0.1 0.06, -0.06 0.05, -0.1 0.15, 0.02 0.13", darker(coat, 0.65))  # fin
    yield from _mouth(species, openness if pose == "mouth open" else 0.0)
    yield disc(0.29, -0.035, 0.03, (245, 240, 220), 14)
    yield disc(0.293, -0.035, 0.016, (18, 18, 20), 10)


def _side(species: Species, fan: float) -> Iterator[Shape]:
    coat = species.coat
    tail = smooth(polygon("-0.16 -0.02, -0.34 0.02, -0.52 0.16, -0.5 0.19, -0.3 0.12, -0.14 0.1"))
    body = smooth(polygon("-0.24 0.02, -0.1 -0.1, 0.14 -0.12, 0.26 -0.04, 0.2 0.1, -0.1 0.13"))
    head = smooth(polygon("0.16 -0.12, 0.3 -0.2, 0.46 -0.12, 0.45 -0.06, 0.28 -0.01, 0.16 0.02"))
    yield from shaded(tail, coat)
    foot = polygon("0.12 0.17, 0.16 0.27, 0.08 0.27, 0.04 0.16")
    for x, lean in ((-0.17, 1.0), (0.1, 1.0), (-0.1, -0.6), (0.17, 0.5)):
        leg = smooth([(x, 0.04), (x + 0.06, 0.05), *moved(foot * (lean, 1), x, 0)], 1)
        yield Shape(leg, darker(coat, 0.62))
    if fan > 0.02:
        drop = 0.34 * fan
        lower = [(0.4, -0.02 + drop * 0.8), (0.3, 0.0 + drop), (0.14, -0.01 + drop * 0.75)]
        throat = smooth([(0.36, -0.07), *lower, (0.1, 0.03)])
        yield from draw_part(species, "throat fan", throat, (0.28, 0.4 * drop))
    yield from draw_part(species, "", body, (0.02, 0.0))
    yield from shaded(head, coat)
    yield disc(0.33, -0.14, 0.02, (240, 210, 90))
    yield Shape(ellipse(0.333, -0.14, 0.01, 0.011, n=8), (15, 15, 15))


def _flat(species: Species, belly: float | None) -> Iterator[Shape]:
    """Top view; with `belly` the same silhouette from below, rolled so that this share
    of the belly shows.
    """
    coat = species.coat
    girth = 0.1 + 0.05 * species.build[1]
    tail = smooth(polygon("-0.05 0.18, 0.05 0.18, 0.05 0.34, 0.14 0.5, 0.11 0.52, 0.0 0.36"))
    left = [(-0.05, -0.22), (-girth, -0.1), (-girth, 0.1), (-0.04, 0.24)]
    body = smooth([*left, (0.04, 0.24), (girth, 0.1), (girth, -0.1), (0.05, -0.22)])
    skull = polygon("-0.07 -0.2, -0.085 -0.3, -0.03 -0.42, 0.03 -0.42, 0.085 -0.3, 0.07 -0.2")
    for side, turn in product((-1, 1), (-1, 1)):  # left and right, front and hind leg
        outer = polygon("0.05 0, 0.22 -0.04, 0.28 0.1, 0.24 0.12") * (side, turn)
        inner = polygon("0.19 0.01, 0.05 0.05") * (side, 1)
        leg = moved(np.concatenate([outer, inner]), 0, 0.12 * turn)
        yield Shape(smooth(leg, 1), darker(coat, 0.62))
    yield from shaded(tail, coat)
    yield from shaded(smooth(skull), coat)
    if belly is None:
        yield from draw_part(species, "", body, (0.0, 0.0))
        for x in (-0.06, 0.06):
            yield Shape(ellipse(x, -0.32, 0.018, 0.022, n=10), (20, 18, 16))
        return
    yield filled("-0.05 -0.27, 0.0 -0.38, 0.05 -0.27, 0.0 -0.35", darker(coat, 0.5))  # jaw
    yield from shaded(body, coat)
    under = body * (0.15 + 0.75 * belly, 0.92) + (0.7 * girth * (1 - belly), 0.0)
    yield from draw_part(species, "belly", under, (under[:, 0].mean(), 0.0))


def draw_lizard(species: Species, pose: str, openness: float) -> Iterator[Shape]:
    """A lizard from the side, from above, or from below."""
    if pose in ("above", "below"):
        return _flat(species, openness if pose == "below" else None)
    return _side(species, openness if pose == "display" else 0.0)


_STEM = (88, 128, 58)


def _leaves(species: Species, turned: float) -> Iterator[Shape]:
    leaf = polygon("0 0.05, 0.14 -0.13, 0.36 -0.12, 0.42 -0.03, 0.2 0.08")
    for side, y in ((-1, 0.2), (1, 0.3)):
        yield from shaded(smooth(moved(leaf * (side, 1), 0, y)), _STEM)
        if turned > 0.02:
            upper = [(side * 0.16, y - 0.12 * turned), (side * 0.38, y + 0.02 - 0.15 * turned)]
            lower = [(side * 0.42, y), (side * 0.22, y + 0.12)]
            tip = smooth([(side * 0.03, y + 0.05), *upper, *lower])
            anchor = (side * 0.23, y + 0.02 - 0.05 * turned)
            yield from draw_part(species, "undersides of the leaves", tip, anchor)
        vein = polygon("0 0.04, 0.38 -0.055, 0 0.06") * (side, 1)
        yield Shape(moved(vein, 0, y), darker(_STEM, 0.7))


def _bell(species: Species) -> Iterator[Shape]:
    width = 0.17 + 0.06 * species.build[0]
    yield from shaded(smooth(polygon("-0.06 0.02, 0.06 0.02, 0.05 -0.06, -0.05 -0.06")), _STEM)
    for lean in (-0.7, 0.7, 0.0):
        x = lean * width
        rim = [(x - 0.14, -0.2), (x - 0.06, -0.4), (x + 0.06, -0.4), (x + 0.14, -0.2)]
        petal = smooth([(-0.05, -0.02), *rim, (0.05, -0.02)])
        yield from draw_part(species, "", petal, (x * 0.8, -0.22))


def _open(species: Species, openness: float) -> Iterator[Shape]:
    petals = 5 + int(species.build[1] * 2.99)
    spread = 0.55 + 0.45 * openness
    for turn in np.linspace(0, 2 * np.pi, petals, endpoint=False) + 0.3:
        x, y = 0.2 * direction(turn) * spread + (0, -0.12)
        yield from draw_part(species, "", ellipse(x, y, 0.17, 0.11, turn), (x, y))
    heart = 0.11 * max(0.0, openness - 0.1)
    if not heart:
        return
    yield from shaded(ellipse(0, -0.12, 0.05 + heart * 0.8, 0.05 + heart * 0.8), (196, 178, 84))
    grown = 0.3 + 0.7 * openness
    for turn in np.linspace(0, 2 * np.pi, 8, endpoint=False):
        x, y = 1.35 * heart * direction(turn) + (0, -0.12)
        tip = ellipse(x, y, 0.048 * grown, 0.036 * grown, turn, n=14)
        yield from draw_part(species, "stamen tips", tip, (x, y))


def draw_flower(species: Species, pose: str, openness: float) -> Iterator[Shape]:
    """A flower on its stem: from the side, or open toward the observer."""
    yield filled("-0.014 0.0, 0.014 0.0, 0.024 0.55, -0.012 0.55", darker(_STEM, 0.85), 0)
    yield from _leaves(species, openness if pose == "windblown" else 0.0)
    yield from _open(species, openness) if pose == "facing" else _bell(species)


_STALK = (224, 208, 178)


def _stalk(top: float) -> Iterator[Shape]:
    foot = [(0.075, 0.3), (0.12, 0.46), (-0.12, 0.46), (-0.075, 0.3)]
    return shaded(smooth([(-0.07, top), (0.07, top), *foot]), _STALK)


def _dome(species: Species) -> Points:
    height = 0.26 + 0.14 * species.build[0]
    left = [(-0.42, 0.02), (-0.38, -height * 0.7), (-0.16, -height)]
    right = [(0.16, -height), (0.38, -height * 0.7), (0.42, 0.02)]
    return smooth([*left, *right, (0.2, 0.07), (-0.2, 0.07)])


def _from_below(species: Species, openness: float) -> Iterator[Shape]:
    tilt = 0.03 + 0.25 * openness
    dome = _dome(species) * (1.0, 1.0 - 0.45 * openness)
    yield from draw_part(species, "", dome, (0.0, -0.1))
    yield from draw_part(species, "gills", ellipse(0, 0.02, 0.39, tilt), (0.0, 0.02))
    crease = darker(COLORS[species.hidden["gills"].color], 0.8)
    for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
        x = 0.385 * np.cos(turn)
        y = 0.02 + 0.97 * tilt * np.sin(turn)
        gill = np.array([(0.0, 0.02), (x - 0.006, y), (x + 0.006, y)])
        yield Shape(gill, crease, "gills", alpha=150)
    yield from _stalk(0.03)


def _cut(species: Species, openness: float) -> Iterator[Shape]:
    dome = _dome(species)
    yield from _stalk(0.0)
    yield from draw_part(species, "", dome, (0.0, -0.1))
    face = shrink_toward(dome, (0.12 * (1 - openness) + 0.02, -0.1), 0.2 + 0.66 * openness)
    yield Shape(shrink_toward(face, face.mean(axis=0), 1.06), lighter(_STALK, 0.3))
    yield from draw_part(species, "flesh", face, (face[:, 0].mean(), face[:, 1].mean()))
    if openness > 0.5:
        stem = smooth(polygon("-0.04 0.06, 0.04 0.06, 0.05 0.42, -0.05 0.42"), 1)
        yield from draw_part(species, "flesh", stem, (0.0, 0.24))


def draw_mushroom(species: Species, pose: str, openness: float) -> Iterator[Shape]:
    """A mushroom from the side, from below, or cut in half."""
    if pose == "from below":
        yield from _from_below(species, openness)
    elif pose == "cut":
        yield from _cut(species, openness)
    else:
        yield from _stalk(0.0)
        yield Shape(ellipse(0, 0.05, 0.34, 0.045), darker(_STALK, 0.45))  # shade
        yield from draw_part(species, "", _dome(species), (0.0, -0.1))


_DOWN = (176, 164, 142)
_GREEN = (104, 140, 66)


def hint(species: Species) -> Color:
    """The grown one's outer color, washed out."""
    return rgb(0.6 * own + 0.4 * down for own, down in zip(species.coat, _DOWN, strict=True))


def caterpillar(species: Species) -> Iterator[Shape]:
    """A row of round segments on a twig."""
    color = hint(species)
    yield filled("0.1 0.1, 0.2 -0.32, 0.42 -0.36, 0.36 -0.05", _GREEN)  # leaf
    yield filled("-0.52 0.18, 0.52 0.06, 0.52 0.11, -0.52 0.24", (92, 72, 48), 1)  # twig
    for step in range(8):
        x = -0.36 + 0.09 * step
        y = 0.05 - 0.09 * np.sin(step / 7 * np.pi) - 0.02 * step / 7
        yield Shape(ellipse(x, y + 0.1, 0.018, 0.04, n=8), darker(color, 0.5))
        yield from shaded(ellipse(x, y, 0.075, 0.09), color)
    yield from shaded(ellipse(0.36, -0.01, 0.085, 0.085), darker(color, 0.55))
    yield Shape(ellipse(0.4, -0.03, 0.02, 0.024, n=10), (240, 236, 220))


def chick(species: Species) -> Iterator[Shape]:
    """A downy ball with a wide bill, in a nest."""
    color = hint(species)
    tuft = polygon("0.05 0.0, 0.31 0.02, 0.05 0.05") - (0.0, 0.02)
    for turn in np.linspace(0, 2 * np.pi, 26, endpoint=False):
        yield Shape(tuft @ rotation(turn).T, lighter(color, 0.2))
    yield from shaded(ellipse(0, 0, 0.25, 0.25), color)
    yield from shaded(ellipse(0.02, -0.24, 0.17, 0.16), color)
    yield filled("0.12 -0.26, 0.3 -0.36, 0.2 -0.24, 0.3 -0.14", (236, 178, 60), 0)  # bill
    for x in (-0.04, 0.1):
        yield disc(x, -0.3, 0.035, (20, 18, 20))
        yield disc(x + 0.01, -0.31, 0.01, (250, 250, 250), 6)
    yield filled("-0.44 0.12, 0.44 0.12, 0.34 0.42, -0.34 0.42", (112, 84, 52))  # nest
    for row in range(7):
        y = 0.15 + 0.035 * row
        straw = [(-0.42 + 0.012 * row, y), (0.4 - 0.012 * row, y + 0.05), (0.4, y + 0.062)]
        yield Shape(np.array(straw), (152, 122, 78) if row % 2 else (84, 60, 36))


def bud(species: Species) -> Iterator[Shape]:
    """A closed green bud; the tip shows a little of the petals."""
    yield filled("-0.014 0, 0.014 0, 0.022 0.55, -0.01 0.55", darker(_GREEN, 0.8), 0)  # stem
    yield from _on_both_sides("0.0 0.42, 0.2 0.18, 0.32 0.12, 0.2 0.34")
    petals = smooth(polygon("-0.1 -0.1, 0.0 -0.46, 0.1 -0.1, 0.0 0.0"))
    yield from shaded(petals, hint(species))
    yield from _on_both_sides("0.0 0.06, 0.2 -0.06, 0.1 -0.34, 0.0 -0.12")
    yield from shaded(smooth(polygon("0 0.07, -0.08 -0.05, 0 -0.3, 0.08 -0.05")), _GREEN)


def _on_both_sides(leaf: str) -> Iterator[Shape]:
    for side in (-1, 1):
        yield from shaded(smooth(polygon(leaf) * (side, 1)), _GREEN)


def button(species: Species) -> Iterator[Shape]:
    """An egg that breaks the ground, with the cap just coming through."""
    cap = smooth(polygon("-0.15 -0.1, -0.1 -0.23, 0.1 -0.23, 0.15 -0.1, 0.05 -0.06, -0.05 -0.06"))
    crack = "-0.17 -0.08, -0.08 -0.02, -0.02 -0.08, 0.06 -0.01, 0.17 -0.08, 0.06 -0.04"
    ground = "-0.5 0.32, -0.2 0.24, 0.2 0.24, 0.5 0.32, 0.4 0.5, -0.4 0.5"
    yield from shaded(ellipse(0, 0.06, 0.22, 0.28), (228, 218, 196))
    yield from shaded(cap, hint(species))
    yield filled(crack, (150, 134, 104), 0)
    yield from shaded(ellipse(0.33, 0.24, 0.09, 0.11), (222, 212, 190))
    yield filled(ground, (84, 66, 46))


def fry(species: Species) -> Iterator[Shape]:
    """A glassy little fish with large eyes and a yolk sac."""
    color = lighter(hint(species), 0.15)
    body = "-0.3 0.0, 0.0 -0.09, 0.26 -0.13, 0.4 0.0, 0.26 0.11, 0.0 0.07"
    yield filled("-0.2 0.0, -0.46 -0.07, -0.42 0.0, -0.46 0.07", color, 1, alpha=170)  # tail
    yield from shaded(ellipse(0.14, 0.13, 0.13, 0.1), (232, 168, 74))
    yield filled(body, color, alpha=235)
    yield filled("-0.3 -0.004, 0.24 -0.02, 0.24 0.0, -0.3 0.008", darker(color, 0.6), 0)  # spine
    yield disc(0.27, -0.03, 0.085, (240, 240, 230), 22)
    yield disc(0.28, -0.03, 0.058, (20, 20, 24), 22)
    yield disc(0.3, -0.05, 0.016, (250, 250, 250), 8)


def hatchling(species: Species) -> Iterator[Shape]:
    """A head with large eyes that comes out of a broken egg."""
    color = hint(species)
    back = "-0.3 0.1, -0.22 -0.22, 0.1 -0.3, 0.24 0.0, 0.2 0.34, -0.2 0.36"
    neck = smooth(polygon("-0.08 0.16, -0.02 -0.1, 0.14 -0.14, 0.14 0.16"))
    head = smooth(polygon("-0.06 -0.12, 0.06 -0.34, 0.28 -0.34, 0.44 -0.2, 0.3 -0.08, 0.08 -0.04"))
    shell = "-0.31 0.08, -0.2 0, -0.12 0.1, -0.02 0, 0.08 0.1, 0.17 0.01, 0.27 0.1"
    shell_below = "0.22 0.3, 0.1 0.41, -0.14 0.41, -0.27 0.29"
    arm = smooth(polygon("0.1 0.06, 0.26 0.02, 0.36 0.12, 0.3 0.14, 0.16 0.12"), 1)
    yield filled(back, (204, 196, 178))
    yield from shaded(neck, color)
    yield from shaded(head, color)
    yield disc(0.18, -0.24, 0.06, (240, 214, 110), 22)
    yield Shape(ellipse(0.19, -0.24, 0.03, 0.044), (16, 16, 16))
    yield filled(f"{shell}, {shell_below}", (236, 230, 214), 0)
    yield from shaded(arm, darker(color, 0.8))
