"""Pictures as they travel to an endpoint."""

from __future__ import annotations

import base64
import io

from vrag_kit.benchmarks.images import decode, opened, shrink
from vrag_kit.types import LazyImage


def data_url(image: LazyImage, side: int | None = None) -> str:
    """The picture as a data URL whose pixels are those of `image.open()`: the file
    itself where it is an upright RGB JPEG or PNG, else a new PNG.
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
        with opened(data, where) as picture:
            small = side is None or max(picture.size) <= side
            upright = picture.getexif().get(0x0112, 1) == 1
            opaque = picture.mode == "RGB" and "transparency" not in picture.info
            kind = {"JPEG": "jpeg", "PNG": "png"}.get(picture.format or "")
            return kind if small and upright and opaque else None
    except OSError:
        return None  # `decode` says what is wrong
