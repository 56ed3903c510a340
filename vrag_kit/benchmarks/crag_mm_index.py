"""Read CRAG-MM's two indexes, images of entities with attributes and web pages: synthetic
ones, and converted official ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.json_lines import parse_object, read_lines
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import safe_join
from vrag_kit.types import DocId, Document, Json

ENTRIES = "entries.jsonl"
"""The file of the image index, with one entry (image) per line."""
PAGES = "pages.jsonl"
"""The file of the web index, with one page per line."""
SPLITS = ("validation", "public_test")
ENTRY_KEYS = ("index", "image", "image_url", "entities")
WORDS, MOST = 512, 50
"""Words per chunk of a page, and the maximum number of chunks per page, including the first."""
PAGE_KEYS = ("page_name", "page_snippet", "page_url", "page_result", "page_last_modified")


def read_image_index(folder: Path | str) -> dict[DocId, Document]:
    """Read the entries of an image index, keyed by "kg-<index>", in the order of `entries.jsonl`.

    `image` is None in a converted official index, which holds no pixels; `metadata` holds
    source ("image_search"), entities (entity_name, and entity_attributes, a mapping or "")
    and url. Raises `VragError` at the first unusable line, and for a duplicate index number;
    `vrag check` lists all.
    """
    path = Path(folder).expanduser() / ENTRIES
    return _all(path, "image index", parse_entry)


def read_web_index(folder: Path | str) -> dict[DocId, Document]:
    """Read the pages of a web index, keyed by URL, in the order of `pages.jsonl`.

    White space in the keys is percent-encoded. `text` is the snippet ("" without one);
    `metadata` holds source ("web_search") and page_name, page_snippet, page_url, page_result
    and page_last_modified ("" if missing), and in a converted official index chunks, the numbers of
    the chunks that have a published vector. Raises `VragError` as `read_image_index` does.
    """
    path = Path(folder).expanduser() / PAGES
    return _all(path, "web index", parse_page)


def parse_entry(line: str, where: str, folder: Path) -> Document:
    """Parse a line of an image index; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, ENTRY_KEYS)
    number = row.get("index")
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise VragError(
            f"{where}: 'index' is {short_repr(number)}, expected a whole number from 0 on."
        )
    entities = row.get("entities")
    if not isinstance(entities, list):
        raise VragError(f"{where}: 'entities' is {short_repr(entities)}, expected a list.")
    metadata = {
        "source": "image_search",
        "entities": [_entity(each, where) for each in entities],
        "url": _text(row, "image_url", where),
    }
    image = _picture(row, where, folder)
    return Document(doc_id=f"kg-{number}", image=image, metadata=metadata)


def parse_page(line: str, where: str, folder: Path) -> Document:
    """Parse a line of a web index; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, PAGE_KEYS)
    fields = {key: _text(row, key, where) for key in PAGE_KEYS}
    if not fields["page_url"].strip():
        raise VragError(
            f"{where}: 'page_url' is {short_repr(row.get('page_url'))}, expected the page's"
            " address."
        )
    published = {"chunks": row["chunks"]} if "chunks" in row else {}
    return Document(
        doc_id=percent_encode_spaces(fields["page_url"].strip()),
        text=fields["page_snippet"],
        metadata={"source": "web_search", **fields, **published},
    )


def page_chunks(page: Document) -> list[str | None]:
    """Return the texts of a page's numbered chunks, as `text_service` takes them. Chunk 0 is the
    title and the snippet; each later one is the next `WORDS` words of the full text, joined by
    single spaces. A chunk that is published without its text is None; "" is no chunk.
    """
    words = (page.metadata.get("page_result") or "").split()[: WORDS * (MOST - 1)]
    texts: list[str | None] = [f"{page.metadata.get('page_name') or ''} {page.text or ''}".strip()]
    texts += [" ".join(words[start : start + WORDS]) for start in range(0, len(words), WORDS)]
    published = set(page.metadata.get("chunks", ()))
    texts += [""] * (max(published, default=0) + 1 - len(texts))
    return [text or (None if i in published else "") for i, text in enumerate(texts)]


def entity_names(entry: Document) -> list[str]:
    """Return the names of an entry's entities; empty for a page."""
    return [each["entity_name"] for each in entry.metadata.get("entities", ())]


def percent_encode_spaces(name: str) -> str:
    """Percent-encode white space and control characters, which ids cannot contain."""
    return re.sub(r"[\s\x00-\x1f\x7f]", lambda found: quote(found[0], safe=""), name)


def index_problem(folder: Path | str, split: str) -> str:
    """Describe why an index cannot be used for a split: its folder's name ends with another
    split's. Returns "" otherwise.
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
    """Yield (where, line) of an index; raises `VragError` if it is missing or empty."""
    where = ""
    for where, line in read_lines(path, what):
        yield where, line
    if not where:
        raise VragError(f"{path}: holds nothing; expected one JSON object a line. Fetch it again.")


def _all(
    path: Path, what: str, parse: Callable[[str, str, Path], Document]
) -> dict[DocId, Document]:
    found: dict[DocId, Document] = {}
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
        raise VragError(f"{where}: 'entity_name' is {short_repr(name)}, expected a name.")
    attributes = row.get("entity_attributes") or ""
    if attributes and not isinstance(attributes, dict):
        raise VragError(
            f"{where}: 'entity_attributes' of {name!r} is {short_repr(attributes)}, expected an"
            " object"
            " or null."
        )
    return {"entity_name": name.strip(), "entity_attributes": attributes}


def _text(row: Json, key: str, where: str) -> str:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise VragError(f"{where}: {key!r} is {short_repr(value)}, expected a text or null.")
    return value or ""


def _picture(row: Json, where: str, folder: Path) -> ImageFile | None:
    name = _text(row, "image", where)
    return ImageFile(safe_join(folder, name, where)) if name else None
