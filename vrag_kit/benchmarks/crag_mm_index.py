"""CRAG-MM's two indexes on disk: pictures that show entities with attributes, and web
pages; drawn ones, and official ones converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.json_lines import parse_object, read_lines
from vrag_kit.errors import VragError, short
from vrag_kit.files import inside
from vrag_kit.plain import Json
from vrag_kit.types import DocId, Evidence

ENTRIES = "entries.jsonl"
"""The file of the image index: one entry, or picture, a line."""
PAGES = "pages.jsonl"
"""The file of the web index: one page a line."""
SPLITS = ("validation", "public_test")
ENTRY_KEYS = ("index", "image", "image_url", "entities")
PAGE_KEYS = ("page_name", "page_snippet", "page_url", "page_result", "page_last_modified")


def read_image_index(folder: Path | str) -> dict[DocId, Evidence]:
    """The entries of an image index by "kg-<index>", in the order of `entries.jsonl`.

    `image` is the picture, None in a converted official index, which holds no pixels;
    `metadata` are source ("image_search"), entities (entity_name, and entity_attributes,
    a mapping or "") and url. Raises `VragError` at the first line that cannot be used,
    and for an index number that came before; `vrag check` lists all.
    """
    path = Path(folder).expanduser() / ENTRIES
    return _all(path, "image index", parse_entry)


def read_web_index(folder: Path | str) -> dict[DocId, Evidence]:
    """The pages of a web index by address, white space percent-encoded, in the order of
    `pages.jsonl`.

    `text` is the snippet, "" for a page without; `metadata` are source ("web_search")
    and page_name, page_snippet, page_url, page_result and page_last_modified, "" where
    there is none. Raises `VragError` as `read_image_index` does.
    """
    path = Path(folder).expanduser() / PAGES
    return _all(path, "web index", parse_page)


def parse_entry(line: str, where: str, folder: Path) -> Evidence:
    """One line of an image index; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, ENTRY_KEYS)
    number = row.get("index")
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise VragError(f"{where}: 'index' is {short(number)}, expected a whole number from 0 on.")
    entities = row.get("entities")
    if not isinstance(entities, list):
        raise VragError(f"{where}: 'entities' is {short(entities)}, expected a list.")
    metadata = {
        "source": "image_search",
        "entities": [_entity(each, where) for each in entities],
        "url": _text(row, "image_url", where),
    }
    image = _picture(row, where, folder)
    return Evidence(doc_id=f"kg-{number}", image=image, metadata=metadata)


def parse_page(line: str, where: str, folder: Path) -> Evidence:
    """One line of a web index; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, PAGE_KEYS)
    told = {key: _text(row, key, where) for key in PAGE_KEYS}
    if not told["page_url"].strip():
        raise VragError(
            f"{where}: 'page_url' is {short(row.get('page_url'))}, expected the page's address."
        )
    return Evidence(
        doc_id=without_white_space(told["page_url"].strip()),
        text=told["page_snippet"],
        metadata={"source": "web_search", **told},
    )


def without_white_space(name: str) -> str:
    """A name with white space and control characters percent-encoded, as an id."""
    return re.sub(r"[\s\x00-\x1f\x7f]", lambda found: quote(found[0], safe=""), name)


def index_problem(folder: Path | str, split: str) -> str:
    """Why an index cannot be searched for a split's questions: its folder's name ends
    with another split's; "" when it does not.
    """
    name = Path(folder).name.replace("-", "_")
    others = [each for each in SPLITS if each != split and name.endswith(each)]
    if not others:
        return ""
    return (
        f"{folder}: the index of {others[0]}, but the questions are those of {split}. Give the"
        " index of the same split: indexes belong to splits."
    )


def index_lines(path: Path, what: str) -> Iterator[tuple[str, str]]:
    """(where, line) of an index; raises `VragError` when it is not there, or empty."""
    where = ""
    for where, line in read_lines(path, what):
        yield where, line
    if not where:
        raise VragError(f"{path}: holds nothing; expected one JSON object a line. Fetch it again.")


def _all(
    path: Path, what: str, parse: Callable[[str, str, Path], Evidence]
) -> dict[DocId, Evidence]:
    found: dict[DocId, Evidence] = {}
    for where, line in index_lines(path, what):
        document = parse(line, where, path.parent)
        if document.doc_id in found:
            raise VragError(
                f"{where}: {document.doc_id!r} came before; expected each once. `vrag check` names"
                " all lines."
            )
        found[document.doc_id] = document
    return found


def _entity(entity: object, where: str) -> Json:
    row = entity if isinstance(entity, dict) else {}
    name = row.get("entity_name")
    if not isinstance(name, str) or not name.strip():
        raise VragError(f"{where}: 'entity_name' is {short(name)}, expected a name.")
    attributes = row.get("entity_attributes") or ""
    if attributes and not isinstance(attributes, dict):
        raise VragError(
            f"{where}: 'entity_attributes' of {name!r} is {short(attributes)}, expected an object"
            " or null."
        )
    return {"entity_name": name.strip(), "entity_attributes": attributes}


def _text(row: Json, key: str, where: str) -> str:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise VragError(f"{where}: {key!r} is {short(value)}, expected a text or null.")
    return value or ""


def _picture(row: Json, where: str, folder: Path) -> ImageFile | None:
    name = _text(row, "image", where)
    return ImageFile(inside(folder, name, where)) if name else None
