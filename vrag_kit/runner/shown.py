"""Rendering of an executed notebook's text, tables and figures as HTML, by nbconvert. Text of data
is escaped where a notebook makes HTML of it; the page's Content-Security-Policy runs no script and
loads nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from markupsafe import Markup
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from vrag_kit.runner.books import Cell, Notebook
from vrag_kit.runner.copies import ADDED
from vrag_kit.types import Json

_SAVED = re.compile(r'save_figure\(\s*(\w+).*?"((?:\w+/)*\d\d_\w+)"', re.DOTALL)
_KINDS = ("image/png", "image/jpeg", "image/svg+xml", "text/html", "text/markdown", "text/plain")
"""Of an output that comes in several forms the first of these is shown."""


_MARKUP = re.compile(r"[\\`*_{}\[\]|~$]|:(?=//)")


def escape_markdown(text: str) -> str:
    """Escapes a text from data for Markdown: nothing of it becomes a tag, a link, emphasis or a
    cell, and it stays on its line.
    """
    return _MARKUP.sub(r"\\\g<0>", escape(" ".join(text.split()), quote=False))


@dataclass(frozen=True, slots=True)
class NotebookTitle:
    """The title of a notebook, and the text below it."""

    title: str = ""
    why: str = ""  # the text below the title
    cell: int = -1  # in which both stand


def notebook_title(book: Notebook) -> NotebookTitle:
    """Return a notebook's title and the text below it; empty if it has none."""
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            lines = cell.source.splitlines()
            return NotebookTitle(lines[0][2:].strip(), "\n".join(lines[1:]).strip(), number)
    return NotebookTitle()


def render_outputs(book: Notebook, stem: str, *, stops: bool) -> Markup:
    """Render text, tables and figures in order, without the headings of empty sections. With
    `stops`, the page ends at the first cell that did not succeed.
    """
    cells = list(_cells(book, stem, stops))
    trimmed = _node(cells=cells, metadata=_node(), nbformat=4, nbformat_minor=4)
    html, _ = _exporter().from_notebook_node(trimmed)
    return Markup(html)


@cache
def _exporter() -> HTMLExporter:
    return HTMLExporter(  # type: ignore[no-untyped-call]  # nbconvert's own has no types
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )


def _cells(book: Notebook, stem: str, stops: bool) -> Iterator[NotebookNode]:
    """The cells of a notebook as they are shown."""
    begins = notebook_title(book)
    section = stem
    heading = ""
    for number, cell in enumerate(book.cells):
        if cell.tags & ADDED or cell.cell_type == "raw":
            continue
        if cell.cell_type == "markdown":
            section = _heading(cell.source) or section
            text = begins.why if number == begins.cell else cell.source
            if text.startswith("## ") and "\n" not in text.strip():
                heading = text  # nothing is below it yet
            else:
                yield _text(text if text.startswith("## ") else f"{heading}\n\n{text}")
                heading = ""
            continue
        outputs = list(_outputs(cell, section, _figure_name(book.cells, number)))
        if outputs:
            if heading:
                yield _text(heading)
            heading = ""
            yield _cell("code", "", outputs=outputs, execution_count=None)
        if stops and not _ended_well(cell):
            first = next(iter(cell.source.splitlines()), "")
            code = f"<code>{escape_markdown(first)}</code>"
            words = f"The notebook stopped here, in the cell that begins with {code};"
            yield _text(f"{words} what follows it is left out.")
            return


def _text(source: str) -> NotebookNode:
    """A text; its headings are one level lower, as the page has its own."""
    return _cell("markdown", re.sub(r"^(?=#+ )", "#", source, flags=re.MULTILINE))


def _cell(cell_type: str, source: str, **more: object) -> NotebookNode:
    return _node(cell_type=cell_type, source=source, metadata=_node(), **more)


def _node(**fields: object) -> NotebookNode:
    return NotebookNode(**fields)  # type: ignore[no-untyped-call]  # nbformat's has no types


def _heading(source: str) -> str:
    """The first heading in a text."""
    headings = [line.lstrip("# ") for line in source.splitlines() if line.startswith("##")]
    return headings[0] if headings else ""


def _ended_well(cell: Cell) -> bool:
    """Whether a code cell was run, its kernel lived to tell, and it raised no error; so
    did one without code.
    """
    status = cell.metadata.get("papermill", {}).get("status")
    answered = "shell.execute_reply" in cell.metadata.get("execution", {})
    return not cell.source.strip() or (status == "completed" and answered)


def _outputs(cell: Cell, section: str, figure: str) -> Iterator[NotebookNode]:
    """What a cell put out, in the form that is shown; what its author prints is, what the
    package tells of its progress is not.
    """
    prints = "print(" in cell.source
    for output in cell.outputs:
        kind = output["output_type"]
        if kind == "stream":
            if prints and output["name"] == "stdout":
                yield _node(output_type="stream", name="stdout", text=output["text"].strip())
        elif kind == "error":
            yield _node(**output)
        else:
            yield from _displays(output["data"], section, figure)


def _displays(data: Json, section: str, figure: str) -> Iterator[NotebookNode]:
    """An output in one form, a picture with its description and its name."""
    if any("widget" in kind for kind in data):
        words = "An interactive part stands here; open the notebook in JupyterLab to use it."
        yield _display("text/html", f'<div class="note">{words}</div>')
        return
    kind = next(kind for kind in (*_KINDS, *data) if kind in data)
    if not kind.startswith("image/"):
        yield _display(kind, data[kind])
        return
    content = data[kind]
    if kind == "image/svg+xml":
        content = base64.b64encode(content.encode()).decode("ascii")
    url = f"data:{kind};base64,{''.join(content.split())}"
    alt = f"{section}: figure {figure}".removesuffix(" ")
    picture = Markup('<figure><img src="{}" alt="{}"><figcaption>{}</figcaption></figure>')
    yield _display("text/html", str(picture.format(url, alt, figure or section)))


def _display(kind: str, content: Any) -> NotebookNode:
    data = _node(**{kind: content})
    return _node(output_type="display_data", data=data, metadata=_node())


def _figure_name(cells: list[Cell], number: int) -> str:
    """The name under which the figure that a cell shows is saved: in it or above it, or
    else below it; "" when it is not saved.
    """
    words = cells[number].source.split()
    variable = words[-1] if words else ""
    before, after = "", ""
    for place, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        names = [name for saved, name in _SAVED.findall(cell.source) if saved == variable]
        if names and place <= number:
            before = names[-1]
        elif names:
            after = after or names[0]
    return before or after
