"""Figure of the images that questions are about, side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from matplotlib.figure import Figure

from vrag_kit.plotting.retrieval import draw_image
from vrag_kit.plotting.style import GREY, new_figure
from vrag_kit.types import Query


def question_images(queries: Mapping[str, Query], titles_are: str) -> Figure:
    """Draws the image of each query (title → query), with the title above and the question below.
    `titles_are` names what the titles are, as in "its quality".
    """
    count = max(1, len(queries))
    figure, axes = new_figure(1, count, (2.2 * count, 3.9))
    for axis, (title, query) in zip(axes.flat, queries.items(), strict=False):
        draw_image(axis, query.image, title, GREY)
        axis.set_xlabel(textwrap.fill(query.text, 26), fontsize=8)
    figure.supxlabel(
        f"Above each picture: {titles_are}. Below: a question that is asked about it.", fontsize=9
    )
    return figure
