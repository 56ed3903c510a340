"""HTML cleaned to what loads nothing and runs nothing."""

from __future__ import annotations

import re

import bleach
from bs4 import BeautifulSoup, Tag
from markupsafe import Markup

_TAGS = {
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"),
    *("h3", "h4", "h5", "h6", "p", "div", "span", "br", "hr", "pre", "blockquote"),
    *("b", "strong", "i", "em", "small", "sub", "sup", "code", "del", "a"),
    *("ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption", "img"),
}
_NUMBER = re.compile(
    r"([-+−±<>≥≤]?\s*[\d.,]*\d\.?(e[-+]?\d+)?\s?%?(\s*\[.*\])?|[-−]?inf|nan|<na>|–)"
    r"(?P<remark>\s*\(.*\))?",
    re.IGNORECASE,
)
"""A number, perhaps with its interval and a remark: "43.2 [29.8, 56.6] (1 failed)"."""


def clean(html: str) -> Markup:
    """HTML with nothing but structure, text, addresses and embedded pictures. Headings are
    one level lower, as the page has its own; columns of numbers are marked, to be set flush
    right.
    """
    soup = BeautifulSoup(html, "html.parser")
    for hidden in soup(["style", "script", "head", "title", "iframe", "math", "svg"]):
        hidden.decompose()
    for image in soup("img"):
        if not str(image.get("src", "")).startswith("data:image/"):
            image.replace_with(f"[{image.get('alt') or 'picture'}: {image.get('src')}]")
    for heading in soup(["h1", "h2", "h3", "h4", "h5"]):
        heading.name = f"h{int(heading.name[1]) + 1}"
    for table in soup("table"):
        _mark_numbers(table)
        table.wrap(soup.new_tag("div", attrs={"class": "table", "tabindex": "0"}))
    kept = bleach.clean(
        str(soup),
        tags=_TAGS,
        attributes=_allowed,
        protocols={"data", "http", "https"},
        strip=True,
        strip_comments=True,
    )
    return Markup(kept)  # bleach has seen to it that nothing in it runs or loads


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag in ("td", "th"):
        marked = name == "class" and value in ("number", "estimate")
        return marked or name in ("colspan", "rowspan", "scope")
    if tag == "img":
        return name == "alt" or (name == "src" and value.startswith("data:image/"))
    if tag == "div":
        return name == "tabindex" or (name == "class" and value in ("table", "note"))
    return tag == "a" and name == "href" and value.startswith(("http://", "https://"))


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
        spread: list[Tag] = []
        for cell in row("th"):
            spread += [cell] * int(str(cell.get("colspan") or 1))
        for place, cell in enumerate(reversed(spread)):
            columns.get(place, []).append(cell)
    for cells in columns.values():
        texts = [cell.get_text().strip() for cell in cells if cell.name == "td"]
        found = [_NUMBER.fullmatch(text) for text in texts if text]
        if found and all(found):
            remarked = any(match["remark"] for match in found if match)
            for cell in cells:
                cell["class"] = "estimate" if remarked else "number"
