"""Texts of documents from JSON Lines of {"doc_id", "text"}, such as an OCR program's output."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from vrag_kit.benchmarks.rows import Problems, Row, validate
from vrag_kit.benchmarks.sources import read_objects
from vrag_kit.benchmarks.transforms import RowId
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import DocId


class TextRow(Row):
    """The text of one document."""

    doc_id: RowId
    text: str


def read_document_texts(
    path: Path | str, documents: Collection[DocId], name: str
) -> dict[DocId, str]:
    """Read the texts of `documents` from a file, keyed by document; `name` is the data set's.

    Missing texts and texts of other documents are counted and printed. Ids are those of the
    data set, or as `encode_id` encodes them. Raises `VragError` for an unusable line, a
    duplicate document, and a file of other documents only.
    """
    file = Path(path).expanduser()
    problems = Problems()
    known = set(documents)
    seen: dict[str, str] = {}
    found: dict[DocId, str] = {}
    others: list[str] = []
    for where, values in read_objects(file, "file of texts", ("doc_id", "text"), problems):
        if row := validate(TextRow, values, where, problems):
            given = values["doc_id"]
            doc_id = given if given in known else row.doc_id
            if doc_id in known:
                problems.is_new(f"document {doc_id!r}", where, seen)
                found[doc_id] = row.text
            else:
                others.append(f"{where}: {doc_id}")
    if not found:
        raise VragError(
            f"{file}: texts of {len(others):,} documents, none of {name}, such as {others[0]!r};"
            f" expected ids such as {', '.join(list(documents)[:3])}. Give the sidecar of this"
            " data set."
        )
    if lacking := len(documents) - len(found):
        logger.info(
            f"{name}: {file.name} has no text of {lacking:,} of {len(documents):,} documents"
        )
    if others:
        words = f"{len(others):,} documents that are not in the corpus ({others[0]})"
        logger.info(f"{name}: {file.name} has texts of {words}; they are passed over")
    return found
