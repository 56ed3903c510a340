"""Check CRAG-MM's indexes and annotations, line by line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_index import (
    ENTRIES,
    PAGES,
    index_lines,
    index_problem,
    parse_entry,
    parse_page,
)
from vrag_kit.benchmarks.crag_mm_marks import KEYS, parse_annotations
from vrag_kit.benchmarks.images import find_damaged
from vrag_kit.benchmarks.json_lines import parse_object, read_lines
from vrag_kit.errors import VragError
from vrag_kit.fetching.health import Finding
from vrag_kit.types import Document


def check_indexes(folder: Path, splits: Collection[str]) -> list[Finding]:
    """Check all indexes in a folder. Findings are unreadable or duplicate lines, missing or damaged
    images, pages without text, entries without an entity, and indexes of splits that are not in
    `splits`.
    """
    found: list[Finding] = []
    for path in sorted(folder.glob(f"*/{ENTRIES}")):
        found += _findings(path, "image index", parse_entry)
        found += _other_split(path.parent, splits)
    for path in sorted(folder.glob(f"*/{PAGES}")):
        found += _findings(path, "web index", parse_page)
        found += _other_split(path.parent, splits)
    return found


def check_annotations(path: Path, asked: Collection[str]) -> list[Finding]:
    """Check an annotation file, and count its annotations of unknown questions."""
    if not path.is_file():
        return []
    found: list[Finding] = []
    seen: dict[str, str] = {}
    for where, line in read_lines(path, "file of marks"):
        place = where.removeprefix(f"{path.parent}/")
        try:
            name = parse_annotations(parse_object(line, where, KEYS), where)["interaction_id"]
        except VragError as error:
            found.append(("row", place, "", str(error).removeprefix(f"{where}: ")))
            continue
        if name in seen:
            found.append(("row", place, "", f"marks of {name} came before, in {seen[name]}"))
        seen.setdefault(name, place)
    if strange := [name for name in seen if name not in asked]:
        words = f"{len(strange):,} of {len(seen):,} marks are of no question, as of {strange[0]}"
        found.append(("odd", path.name, "", words))
    return found


def _findings(
    path: Path, what: str, parse: Callable[[str, str, Path], Document]
) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    name = f"{path.parent.name}/{path.name}"
    try:
        for where, line in index_lines(path, what):
            place = where.replace(str(path), name)
            try:
                document = parse(line, where, path.parent)
            except VragError as error:
                yield "row", place, "", str(error).removeprefix(f"{where}: ")
                continue
            before = seen.setdefault(document.doc_id, place)
            if before != place:
                yield "row", place, "", f"{document.doc_id} came before, in {before}"
            yield from _of_document(document, place)
    except VragError as error:
        yield "row", name, "", str(error)


def _of_document(document: Document, place: str) -> Iterator[Finding]:
    told = document.metadata
    if document.image is not None:
        image = document.image
        for words in find_damaged([image]):
            kind = "damaged" if Path(image.where).is_file() else "missing"
            yield kind, place, Path(image.where).name, words
    if document.text is not None and not (document.text.strip() or told["page_result"].strip()):
        yield "odd", place, "", "a page that says nothing: no snippet and no text"
    if not told.get("entities", True):
        yield "odd", place, "", "an entry without an entity"


def _other_split(folder: Path, splits: Collection[str]) -> list[Finding]:
    problems = [index_problem(folder, split) for split in splits]
    if not splits or not all(problems):
        return []
    words = f"{problems[0].removeprefix(f'{folder}: ')} No rows of that split are here."
    return [("odd", folder.name, "", words)]
