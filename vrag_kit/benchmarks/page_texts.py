"""Texts of pages from a sidecar file: JSON Lines of {"doc_id", "text"}, such as the output of
an OCR program.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from vrag_kit.benchmarks.sources import parse_object, read_lines
from vrag_kit.benchmarks.transforms import parse_id
from vrag_kit.errors import VragError, short_repr
from vrag_kit.log import logger
from vrag_kit.types import DocId


def read_page_texts(path: Path | str, pages: Collection[DocId], name: str) -> dict[DocId, str]:
    """Read the texts of `pages` from a sidecar file, keyed by page.

    Missing texts and texts of other pages are counted and printed. Ids are those of the data
    set, or as encoded by the kit. Raises `VragError` for an unusable line, a duplicate page,
    and a file of other pages only.
    """
    file = Path(path).expanduser()
    found: dict[DocId, str] = {}
    others: list[str] = []
    for where, line in read_lines(file, "file of page texts"):
        doc_id, text = _parse(line, where, pages)
        if doc_id in found:
            raise VragError(f"{where}: page {doc_id!r} came before; expected each once.")
        if doc_id in pages:
            found[doc_id] = text
        else:
            others.append(f"{where}: {doc_id}")
    if not found:
        first = f" such as {others[0]!r}" if others else ""
        raise VragError(
            f"{file}: texts of {len(others):,} pages, none of {name}{first}; its pages are"
            f" {', '.join(list(pages)[:3])}, …. Give the sidecar of this data set."
        )
    if lacking := len(pages) - len(found):
        logger.info(f"{name}: {file.name} has no text of {lacking:,} of {len(pages):,} pages")
    if others:
        told = f"{len(others):,} pages that are not in the corpus ({others[0]})"
        logger.info(f"{name}: {file.name} has texts of {told}; they are passed over")
    return found


def _parse(line: str, where: str, pages: Collection[DocId]) -> tuple[DocId, str]:
    row = parse_object(line, where, ("doc_id", "text"))
    given = row.get("doc_id")
    doc_id = (
        given if isinstance(given, str) and given in pages else parse_id(given, "doc_id", where)
    )
    text = row.get("text")
    if not isinstance(text, str):
        raise VragError(f"{where} (page {doc_id}): text is {short_repr(text)}, expected a text.")
    return doc_id, text
