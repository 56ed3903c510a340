"""HTML of panels and pages: cards, thumbnails and tables of facts, made from `templates`.

Text from data is escaped by jinja2; images are embedded as small JPEGs, so that a notebook stays
small and needs no server.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from vrag_kit.benchmarks.images import shrink
from vrag_kit.errors import VragError
from vrag_kit.types import LazyImage

SIDE = 256
"""Longer side of a thumbnail, in pixels."""
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
)


def render(template: str, **values: object) -> Markup:
    """Return a template of this room as HTML; values that are not `Markup` are escaped."""
    return Markup(_TEMPLATES.get_template(template).render(values))


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """Static HTML, displayed by notebooks."""

    data: Markup

    def __repr__(self) -> str:
        return f"Page({len(self.data):,} characters)"

    def _repr_html_(self) -> str:
        return str(self.data)


def page_html(cards: Iterable[Markup], nothing: str) -> Page:
    """Return cards with their style as static HTML, one below another; `nothing` if there are
    none.
    """
    return Page(render("page.html", cards=list(cards), nothing=nothing))


def card_html(
    question: str, facts: Mapping[str, object], evidence: Iterable[str] = (), *, note: str = ""
) -> Markup:
    """Return a card: a note, the question, a table of facts, and evidence below it.
    Evidence is text, escaped, or `Markup` such as `image_html`.
    """
    return render("card.html", question=question, facts=facts, evidence=evidence, note=note)


def image_html(
    image: LazyImage | None, *, caption: str = "", kind: str = "", side: int = SIDE
) -> Markup:
    """Return an HTML figure of an image with a caption; nothing for None.

    Its longer side is at most `side` pixels. The `kind` "relevant" or "query" gives it a coloured
    frame. An image that cannot be read gives the reason.
    """
    if image is None:
        return Markup()
    data = problem = ""
    try:
        data = base64.b64encode(to_jpeg(image, side)).decode("ascii")
    except VragError as error:
        problem = str(error)
    return render("image.html", data=data, problem=problem, caption=caption, kind=kind)


def to_jpeg(image: LazyImage, side: int, *, quality: int = 75) -> bytes:
    """Return the image as an upright RGB JPEG, its longer side at most `side` pixels.

    Raises `VragError` when it cannot be read.
    """
    buffer = io.BytesIO()
    shrink(image.open(), side).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


_TEMPLATES.globals["image"] = image_html
