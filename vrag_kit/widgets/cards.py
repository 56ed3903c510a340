"""Build cards and pages of cards in HTML; all text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.display import HTML


def definition_list(rows: Mapping[str, object]) -> str:
    """Return a table of names and values as HTML, with the line breaks of the text."""
    cells = [
        "<tr style='vertical-align:top'>"
        f"<td style='text-align:left;padding-right:1em'>{escape(name)}</td>"
        f"<td style='text-align:left'><b style='white-space:pre-wrap'>{escape(text)}</b></td>"
        "</tr>"
        for name, text in zip(rows, map(str, rows.values()), strict=True)
    ]
    return f"<table>{''.join(cells)}</table>"


def page_html(cards: Sequence[str], nothing: str) -> HTML:
    """Return cards as static HTML, one below another; `nothing` if there are none."""
    from IPython.display import HTML

    page = "<hr>".join(cards) or f"<p>{escape(nothing)}</p>"
    return HTML(page)  # type: ignore[no-untyped-call]  # IPython's own lacks types
