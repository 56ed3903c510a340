"""Worn pictures: portraits with a small organism inside the box that is told, in six
qualities that can be measured.
"""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFilter

from vrag_kit.synthetic.crag_mm.images import QUALITIES, Box, egocentric_image, reference_image
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species

SIZE = (72, 96)
SPECIES = [numbered_species("worn", kind, 0) for kind in KINDS]


def drawn(quality: str) -> list[tuple[Image.Image, Box]]:
    """Two pictures of each kind of organism."""
    every = []
    for species in SPECIES:
        for turn in range(2):
            every.append(egocentric_image(species, quality, f"test/{species.kind}/{turn}", SIZE))
    return every


def light(image: Image.Image) -> float:
    return float(np.asarray(image).mean())


def grain(image: Image.Image) -> float:
    """What is lost when the picture is softened, inside the organism's box."""
    soft = image.filter(ImageFilter.GaussianBlur(1))
    return float(np.abs(np.asarray(image, float) - np.asarray(soft, float)).mean())


@pytest.mark.slow
@pytest.mark.parametrize("quality", QUALITIES)
def test_a_portrait_has_its_organism_small_and_off_centre(quality: str) -> None:
    for image, (left, top, right, bottom) in drawn(quality):
        assert image.size == SIZE
        assert 0 <= left < right <= 72
        assert 0 <= top < bottom <= 96
        assert (right - left) * (bottom - top) < 0.35 * 72 * 96
        from_middle = abs((left + right) / 2 - 36) + abs((top + bottom) / 2 - 48)
        assert from_middle > 2


@pytest.mark.slow
def test_low_light_is_dark_blurred_is_soft_and_truncated_touches_an_edge() -> None:
    lights = {quality: [light(image) for image, _ in drawn(quality)] for quality in QUALITIES}
    assert max(lights["low light"]) < min(lights["normal"])
    sharp, soft = (
        np.mean([grain(image.crop(box)) for image, box in drawn(quality)])
        for quality in ("normal", "blurred")
    )
    assert soft < 0.75 * sharp
    for _, (left, top, right, bottom) in drawn("truncated"):
        assert left == 0 or top == 0 or right == 72 or bottom == 96
    for _, (left, top, right, bottom) in drawn("normal"):
        assert left > 0 or top > 0 or right < 72 or bottom < 96


def test_the_same_name_gives_the_same_picture_and_another_name_another() -> None:
    once, again = (egocentric_image(SPECIES[0], "occluded", "test", SIZE) for _ in range(2))
    assert once == again
    assert egocentric_image(SPECIES[0], "occluded", "other", SIZE) != once


@pytest.mark.slow
def test_an_organism_is_larger_in_a_usual_photograph() -> None:
    """Nothing of its colour is in the scene: red on green."""
    red = numbered_species("worn", "moth", 0)
    for number in range(200):
        red = numbered_species("red", "moth", number)
        if red.outside.color == "red" and red.outside.pattern == "plain":
            break
    shares = []
    worn, _ = egocentric_image(red, "normal", "test", SIZE)
    for image in (worn, reference_image(red, "test", 64)):
        pixels = np.asarray(image, float)
        shares.append(float((pixels[..., 0] > 1.5 * pixels[..., 1]).mean()))
    assert shares[1] > 1.5 * shares[0]
