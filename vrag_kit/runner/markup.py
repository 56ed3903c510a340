"""HTML that loads nothing and runs nothing, from what notebooks hold: Markdown,
formulas, tables and pictures.
"""

from __future__ import annotations

import base64
import io
import re

import bleach
import matplotlib as mpl
import matplotlib.style as look
import mistune
from bs4 import BeautifulSoup, Tag
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser

_FONT = FontProperties(size=12)
_TAGS = {
    "table",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "div",
    "p",
    "br",
    "span",
    "b",
    "strong",
    "i",
    "em",
    "small",
    "sub",
    "sup",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "h3",
    "h4",
    "h5",
    "h6",
    "figure",
    "figcaption",
    "img",
}
_NUMBER = re.compile(
    r"([-+−±<>≥≤]?\s*[\d.,]*\d\.?(e[-+]?\d+)?\s?%?(\s*\[.*\])?|[-−]?inf|nan|<na>|–)(?P<remark>\s*\(.*\))?",
    re.IGNORECASE,
)
"""A number, perhaps with its interval and a remark, as in "43.2 [29.8, 56.6] (n = 80, 1
failed)".
"""


class _Offline(mistune.HTMLRenderer):
    """Headings one level lower, as the page has its own first one; addresses in words,
    not as links; raw HTML as it was typed.
    """

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """A heading below those of the page."""
        return f"<h{min(level + 1, 6)}>{text}</h{min(level + 1, 6)}>\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """The text, then the address."""
        return text if url in text else f"{text} ({escape(url)})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """The picture when the notebook itself holds it, otherwise its description and
        where it is.
        """
        return str(picture(url, text)) if _embedded(url) else f"[{text}: {escape(url)}]"

    def inline_math(self, text: str) -> str:
        """A formula in a line of text."""
        return str(formula(text))

    def block_math(self, text: str) -> str:
        """A formula of its own line."""
        return f'<p class="formula">{formula(text)}</p>\n'


_markdown = mistune.Markdown(
    _Offline(escape=True),
    plugins=[mistune.import_plugin(name) for name in ("table", "strikethrough", "math")],
)


def markdown(source: str) -> Markup:
    """Markdown with tables and formulas ($…$, $$…$$)."""
    return Markup(_markdown(source))


def formula(tex: str) -> Markup:
    """TeX as a drawing that sits on the line; what matplotlib cannot set is shown as it
    was typed.
    """
    text = f"${' '.join(tex.split())}$"
    try:
        width, height, depth, _, _ = MathTextParser("path").parse(text, dpi=72, prop=_FONT)
    except ValueError:
        return Markup("<code>{}</code>").format(text)
    drawing = io.BytesIO()
    with (
        look.context("default"),
        mpl.rc_context({"svg.hashsalt": "vrag_kit"}),
    ):  # whatever look the notebooks' figures have set
        figure = Figure(figsize=(width / 72, height / 72))
        figure.text(0, depth / height, text, fontproperties=_FONT)
        figure.savefig(drawing, format="svg", transparent=True, metadata={"Date": None})
    return Markup(
        '<img class="formula" src="{}" alt="{}" style="height: {:.2f}em; vertical-align: {:.2f}em">'
    ).format(data_url("image/svg+xml", drawing.getvalue()), tex.strip(), height / 12, -depth / 12)


def data_url(kind: str, content: bytes) -> str:
    """The content in an address of its own."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def picture(url: str, alt: str) -> Markup:
    """A picture, embedded."""
    return Markup('<img src="{}" alt="{}">').format(url, alt)


def tables(html: str, name: str) -> Markup:
    """A notebook's HTML output, mostly tables of pandas, with nothing but structure,
    text and embedded pictures; columns of numbers are marked, to be set flush right.
    """
    soup = BeautifulSoup(html, "html.parser")
    for hidden in [
        *soup(["style", "script", "head", "title"]),
        *soup("img", src=lambda url: not _embedded(url or "")),
    ]:
        hidden.decompose()
    for table in soup("table"):
        _mark_numbers(table)
    kept = bleach.clean(
        str(soup),
        tags=_TAGS,
        attributes=_allowed,
        protocols={"data"},
        strip=True,
        strip_comments=True,
    )
    return Markup('<div class="table" role="region" tabindex="0" aria-label="{}">{}</div>').format(
        name, Markup(kept)
    )


def _mark_numbers(table: Tag) -> None:
    """Give the cells and headings of columns that hold only numbers the class "number",
    or "estimate" where some have a remark.

    Columns are counted from the right: on the left pandas has row labels, fewer in rows
    that share one.
    """
    columns: dict[int, list[Tag]] = {}
    for row in table.select("tbody tr"):
        for place, cell in enumerate(reversed(row("td"))):
            columns.setdefault(place, []).append(cell)
    for row in table.select("thead tr"):
        spread = [cell for cell in row("th") for _ in range(int(cell.get("colspan", 1)))]
        for place, cell in enumerate(reversed(spread)):
            columns.get(place, []).append(cell)
    for cells in columns.values():
        texts = [text for cell in cells if cell.name == "td" and (text := cell.get_text().strip())]
        found = [_NUMBER.fullmatch(text) for text in texts]
        if texts and all(found):
            for cell in cells:
                cell["class"] = (
                    "estimate" if any(match["remark"] for match in found if match) else "number"
                )


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag in ("td", "th"):
        return name in ("colspan", "rowspan", "scope") or (
            name == "class" and value in ("number", "estimate")
        )
    return tag == "img" and (name == "alt" or (name == "src" and _embedded(value)))


def _embedded(url: str) -> bool:
    return url.startswith("data:image/")
