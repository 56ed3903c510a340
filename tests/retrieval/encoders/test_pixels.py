"""Our fast decoder gives Pillow's pixels, upright and RGB."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vrag_kit.benchmarks.images import decode
from vrag_kit.retrieval.encoders.pixels import decode_rgb

EXIF = Image.Exif()
EXIF[0x0112] = 6
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "upright": ("RGB", {"format": "JPEG", "quality": 95}),
    "turned": ("RGB", {"format": "JPEG", "quality": 95, "exif": EXIF}),
    "cmyk": ("CMYK", {"format": "JPEG", "quality": 95}),
    "gray": ("L", {"format": "PNG"}),
    "palette": ("P", {"format": "PNG"}),
    "transparent": ("RGBA", {"format": "PNG"}),
    "16-bit": ("I;16", {"format": "PNG"}),
    "webp": ("RGB", {"format": "WEBP", "lossless": True}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_image_is_decoded_as_pillow_does(kind: str) -> None:
    mode, options = KINDS[kind]
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize((60, 40))
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    file = io.BytesIO()
    (image if mode == "I;16" else image.convert(mode)).save(file, **options)
    theirs = np.array(decode(file.getvalue(), kind), int).transpose(2, 0, 1)
    ours = decode_rgb(file.getvalue(), kind).numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 2
