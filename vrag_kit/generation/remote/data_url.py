"""Pictures as they travel to an endpoint."""

from __future__ import annotations

import base64
import io

from PIL import Image

from vrag_kit.benchmarks.images import decode, shrink
from vrag_kit.types import LazyImage


def data_url(image: LazyImage, side: int | None = None) -> str:
    """The picture as a data URL whose pixels are those of `image.open()`: the file
    itself where it is an upright RGB JPEG or PNG, else a new PNG.
    """
    data = image.data()
    kind = _plain(data) if side is None or max(Image.open(io.BytesIO(data)).size) <= side else None
    if kind is None:
        buffer = io.BytesIO()
        shrink(decode(data, image.where), side).save(buffer, "PNG")
        data, kind = buffer.getvalue(), "png"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _plain(data: bytes) -> str | None:
    """ "jpeg" or "png" for a picture that every server decodes to the same upright RGB
    pixels; None for any other.
    """
    try:
        with Image.open(io.BytesIO(data)) as picture:
            upright = picture.getexif().get(0x0112, 1) == 1
            return (
                picture.format.lower()
                if picture.format in ("JPEG", "PNG")
                and picture.mode == "RGB"
                and upright
                and "transparency" not in picture.info
                else None
            )
    except OSError:
        return None  # `decode` says what is wrong
