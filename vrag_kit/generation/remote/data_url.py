"""Encode images as data URLs for an endpoint."""

from __future__ import annotations

import base64
import io

from vrag_kit.benchmarks.images import decode, open_image, shrink
from vrag_kit.types import LazyImage


def data_url(image: LazyImage, side: int | None = None) -> str:
    """Return an image as a data URL with the pixels of `image.open()`. The file itself is used if
    it is an upright RGB JPEG or PNG, otherwise a new PNG.
    """
    data = image.data()
    kind = _plain(data, image.where, side)
    if kind is None:
        buffer = io.BytesIO()
        shrink(decode(data, image.where), side).save(buffer, "PNG")
        data, kind = buffer.getvalue(), "png"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _plain(data: bytes, where: str, side: int | None) -> str | None:
    """ "jpeg" or "png" for a picture of at most `side` that every server decodes to the same
    upright RGB pixels; None for any other.
    """
    try:
        with open_image(data, where) as picture:
            small = side is None or max(picture.size) <= side
            upright = picture.getexif().get(0x0112, 1) == 1
            opaque = picture.mode == "RGB" and "transparency" not in picture.info
            kind = {"JPEG": "jpeg", "PNG": "png"}.get(picture.format or "")
            return kind if small and upright and opaque else None
    except OSError:
        return None  # `decode` says what is wrong
