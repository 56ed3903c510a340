"""Convert images to small JPEGs, and embed thumbnails in HTML.

A notebook therefore stays small and needs no server.
"""

from __future__ import annotations

import base64
import io
from html import escape

from vrag_kit.benchmarks.images import shrink
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, LazyImage

SIDE = 256
"""Longer side of a thumbnail, in pixels."""


def to_jpeg(image: LazyImage, side: int = SIDE, *, quality: int = 75) -> bytes:
    """Return the image as an upright RGB JPEG, its longer side at most `side` pixels.

    Raises `VragError` when it cannot be read.
    """
    buffer = io.BytesIO()
    shrink(image.open(), side).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def document_thumbnail(
    benchmark: Benchmark, doc_id: str, *, caption: str = "", frame: str = "transparent"
) -> str:
    """Return `image_html` of the document's image; "" without an image."""
    image = benchmark.corpus[doc_id].image
    return "" if image is None else image_html(image, caption=caption, frame=frame)


def image_html(
    image: LazyImage, *, caption: str = "", frame: str = "transparent", side: int = SIDE
) -> str:
    """Return an HTML figure of the image, with a caption and a coloured frame.
    Its longer side is at most `side` pixels. An image that cannot be read gives the reason.
    """
    try:
        source = f"data:image/jpeg;base64,{base64.b64encode(to_jpeg(image, side)).decode('ascii')}"
    except VragError as error:
        return f"<i>no picture: {escape(str(error))}</i>"
    words = ""
    if caption:
        words = f"<figcaption style='text-align:center'>{escape(caption)}</figcaption>"
    return (
        "<figure style='display:inline-block;margin:0 6px 6px 0'>"
        f"<img alt='{escape(caption or 'picture', quote=True)}' style='border:4px solid {frame}'"
        f" src='{source}'>{words}</figure>"
    )
