"""Draws the image of one document or question into axes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from vrag_kit.plotting.old_style import DARK, GREY
from vrag_kit.types import Benchmark, LazyImage

ASKED = "asked about"
"""The title of a question's own image."""


def draw_document_image(
    axis: Axes, benchmark: Benchmark, doc_id: str, title: str, frame: str
) -> None:
    """Draws one document's image with a coloured frame."""
    draw_image(axis, benchmark.corpus[doc_id].image, title, frame)


def draw_image(axis: Axes, image: LazyImage | None, title: str, frame: str) -> None:
    """Draws an image with a coloured frame; only the frame for None."""
    if image is not None:
        picture = image.open()
        picture.thumbnail((256, 256))
        axis.imshow(np.asarray(picture))
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=8, color=frame if frame != GREY else DARK)
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=frame, linewidth=3 if frame != GREY else 0.8)
