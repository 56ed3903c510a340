"""A document's picture as a small embedded thumbnail, so that a notebook stays small and needs no server."""

from __future__ import annotations

import base64
import io
from html import escape

from vrag_kit.benchmarks.images import shrink
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark

SIDE = 256  # longer side, pixels


def thumbnail(benchmark: Benchmark, doc_id: str, *, caption: str = "", frame: str = "transparent") -> str:
    """An HTML figure of the document's image, at most `SIDE` pixels long, with a caption and a coloured frame; its reason instead when it cannot be read, "" without an image."""
    image, buffer = benchmark.corpus[doc_id].image, io.BytesIO()
    if image is None:
        return ""
    try:
        shrink(image.open(), SIDE).save(buffer, "JPEG")
    except VragError as error:
        return f"<i>no picture: {escape(str(error))}</i>"
    source = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
    words = f"<figcaption style='text-align:center'>{escape(caption)}</figcaption>" if caption else ""
    return (f"<figure style='display:inline-block;margin:0 6px 6px 0'><img alt='{escape(caption or 'clue', quote=True)}' style='border:4px solid {frame}' src='{source}'>"
            f"{words}</figure>")
