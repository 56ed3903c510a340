"""What all scenarios paint with: clear views of a part, and shapes of any sort over a
scene of the guide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from PIL import Image, ImageFilter

from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart
from vrag_kit.synthetic.world.photographs import plan_clue_photo
from vrag_kit.synthetic.world.shapes import Shape, paint, rgb
from vrag_kit.synthetic.world.traits import Species, stream
from vrag_kit.synthetic.world.views import View, draw_photograph, sample_view

OUTSIDE_POSE = {
    "moth": "rest",
    "bird": "perched",
    "flower": "side",
    "mushroom": "side",
    "fish": "side",
    "lizard": "above",
}
"""Kind → the pose that shows its outside best."""


def hidden_part(species: Species, part: str) -> HiddenPart | None:
    """The hidden part of that name; None for the outside."""
    return next((each for each in KINDS[species.kind].hidden if each.name == part), None)


def view_showing(species: Species, part: str, name: str) -> View:
    """A usual view that shows the part: for a hidden one its rare pose, with nothing in
    the way.
    """
    hidden = hidden_part(species, part)
    if hidden:
        return plan_clue_photo(species, hidden, name).view
    view = sample_view(species, OUTSIDE_POSE[species.kind], 0.0, stream(name), name)
    near = max(view.scale, 0.6)
    return replace(view, scale=near, leaf=False, blades=min(view.blades, 1), blur=0.003)


def draw_showing(species: Species, part: str, name: str, size: int) -> Image.Image:
    """A photograph that shows the part."""
    return draw_photograph(species, view_showing(species, part, name), size)


def draw_scene(species: Species, view: View, size: int) -> Image.Image:
    """What a photograph of this view would be without the organism."""
    return draw_photograph(species, replace(view, x=9.0, leaf=False, blades=0), size)


def draw_over_scene(
    species: Species, view: View, shapes: Iterable[Shape], size: int
) -> Image.Image:
    """Shapes in frame coordinates over the scene of a view, in its light."""
    image = draw_scene(species, view, 2 * size)
    tint = np.array([1 + 0.1 * view.warmth, 1.0, 1 - 0.12 * view.warmth]) * view.light
    lit = []
    for shape in shapes:
        color = rgb(np.clip(np.array(shape.color) * tint, 0, 255))
        lit.append(replace(shape, color=color))
    paint(image, lit)
    image = image.reduce(2)
    if view.blur * size > 0.3:
        image = image.filter(ImageFilter.GaussianBlur(view.blur * size))
    return image
