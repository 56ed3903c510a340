"""The guide's species in another drawing style: outlined and coloured like the plates
of a printed book (standing for the images of iNaturalist 2024).
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from vrag_kit.synthetic.organisms import KINDS
from vrag_kit.synthetic.shapes import darker, lighter
from vrag_kit.synthetic.traits import Species, stream
from vrag_kit.synthetic.views import SCENES, View, compose_view

_PAPER = (236, 226, 204)


def draw_plate(species: Species, view: View, size: int) -> Image.Image:
    """Draw a view as a coloured plate, RGB, size × size pixels: paper washed with two
    colours of the scene, ink outlines, no blur and no camera noise.
    """
    fine = 3 if size < 100 else 2
    rng, palette = stream(view.name, "plate"), SCENES[KINDS[species.kind].scene]
    image = _wash(rng, palette, size * fine)
    pen, width = ImageDraw.Draw(image, "RGBA"), max(1, size * fine // 150)
    for shape in compose_view(species, view):
        outline = [tuple(point) for point in (shape.points + 0.5) * size * fine]
        pen.polygon(outline, fill=(*shape.color, shape.alpha))
        if shape.alpha == 255:
            pen.line([*outline, outline[0]], fill=(*darker(shape.color, 0.45), 255), width=width)
    grain = rng.standard_normal((size, size, 1)) * 3.0
    pixels = np.asarray(image.reduce(fine), dtype=np.float32) * (0.94, 0.93, 0.88) + 12 + grain
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _wash(
    rng: np.random.Generator, palette: tuple[tuple[int, int, int], ...], side: int
) -> Image.Image:
    """Paper with broad strokes of two pale colours."""
    image = Image.new("RGB", (side, side), _PAPER)
    pen = ImageDraw.Draw(image)
    for color in (palette[0], palette[int(rng.integers(1, len(palette)))]):
        for _ in range(7):
            height, slope = rng.uniform(0.02, 0.09) * side, rng.uniform(-0.12, 0.12) * side
            y = rng.uniform(0, 1) * side
            pen.polygon(
                [(0, y), (side, y + slope), (side, y + slope + height), (0, y + height)],
                fill=lighter(color, float(rng.uniform(0.35, 0.7))),
            )
    return image
