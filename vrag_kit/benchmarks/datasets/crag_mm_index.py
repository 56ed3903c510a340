"""CRAG-MM's two indexes, images of entities with attributes and web pages, and annotations that
the public data lack: entity, popularity, whether the question needs the history, a reference
query, and the image region in question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.rows import RAISE, InsidePath, Problems, Row, Text, validate
from vrag_kit.benchmarks.sources import find_shards, read_objects, read_shard
from vrag_kit.benchmarks.transforms import SpacelessText, percent_encode_spaces
from vrag_kit.files import write_file
from vrag_kit.types import DocId, Document, Json, JsonView, QueryId

ENTRIES = "entries.jsonl"
"""The file of the image index, with one entry (image) per line."""
PAGES = "pages.jsonl"
"""The file of the web index, with one page per line."""
WORDS, MOST = 512, 50
"""Words per chunk of a page, and the maximum number of chunks per page, including the first."""
MARKS = "marks.jsonl"
"""The annotation file in the folder of the rows."""
DIAGNOSTIC = "McGill-NLP/crag-mm-diagnostic"
"""Third-party annotations of some of the public questions, on the hub (split test)."""


class Entity(Row):
    """An entity that an image shows."""

    entity_name: Text
    entity_attributes: Annotated[dict[str, Any] | None, BeforeValidator(lambda v: v or None)] = None
    # Any: what the knowledge graph holds


class Entry(Row):
    """An image of the image index; a converted official index has no image files."""

    index: Annotated[int, Field(ge=0, description="a whole number from 0 on")]
    image: InsidePath | None = None
    image_url: str | None = None
    entities: list[Entity]


class WebPage(Row):
    """A page of the web index."""

    page_name: str | None = None
    page_snippet: str | None = None
    page_url: Text
    page_result: str | None = None
    page_last_modified: str | None = None
    chunks: list[int] | None = None


class Annotations(Row):
    """Annotations of one question."""

    model_config = ConfigDict(extra="forbid")

    interaction_id: SpacelessText
    entity: str | None = None
    popularity: Literal["head", "torso", "tail"] | None = None
    needs_history: bool | None = None
    reference_query: str | None = None
    region: list[FiniteFloat] | None = Field(None, min_length=4, max_length=4)
    image_size: list[FiniteFloat] | None = Field(None, min_length=2, max_length=2)


def read_image_index(folder: Path | str, problems: Problems = RAISE) -> dict[DocId, Document]:
    """Read the entries of an image index, keyed by "kg-<index>", in the order of `entries.jsonl`.

    `image` is None in a converted official index, which holds no pixels; `metadata` holds
    source ("image_search"), entities (entity_name, and entity_attributes, a mapping or "")
    and url. Problems are unusable lines and duplicate index numbers; without `problems` the first
    raises `VragError`. It is raised too for a missing or empty file.
    """
    folder = Path(folder).expanduser()
    read = partial(entry_document, folder=folder)
    return _read_index(folder / ENTRIES, "image index", Entry, read, problems)


def entry_document(
    values: JsonView, location: str, problems: Problems, folder: Path
) -> Document | None:
    """Return the document of an entry, whose image is in `folder`; None for a problem."""
    row = validate(Entry, values, location, problems)
    if row is None:
        return None
    entities = [
        {"entity_name": each.entity_name, "entity_attributes": each.entity_attributes or ""}
        for each in row.entities
    ]
    return Document(
        doc_id=f"kg-{row.index}",
        image=ImageFile(folder / row.image) if row.image else None,
        metadata={"source": "image_search", "entities": entities, "url": row.image_url or ""},
    )


def read_web_index(folder: Path | str, problems: Problems = RAISE) -> dict[DocId, Document]:
    """Read the pages of a web index, keyed by URL, in the order of `pages.jsonl`.

    White space in the keys is percent-encoded. `text` is the snippet ("" without one);
    `metadata` holds source ("web_search") and page_name, page_snippet, page_url, page_result
    and page_last_modified ("" if missing), and in a converted official index chunks, the numbers of
    the chunks that have a published vector. Problems and errors are those of `read_image_index`.
    """
    path = Path(folder).expanduser() / PAGES
    return _read_index(path, "web index", WebPage, page_document, problems)


def page_document(values: JsonView, location: str, problems: Problems) -> Document | None:
    """Return the document of a page; None for a problem."""
    row = validate(WebPage, values, location, problems)
    if row is None:
        return None
    fields = {key: values.get(key) or "" for key in WebPage.model_fields if key != "chunks"}
    published = {} if row.chunks is None else {"chunks": row.chunks}
    return Document(
        doc_id=percent_encode_spaces(row.page_url),
        text=fields["page_snippet"],
        metadata={"source": "web_search", **fields, **published},
    )


def _read_index(
    path: Path,
    what: str,
    model: type[Row],
    read: Callable[[JsonView, str, Problems], Document | None],
    problems: Problems,
) -> dict[DocId, Document]:
    """The documents of a file by id, in order."""
    found: dict[DocId, Document] = {}
    seen: dict[str, str] = {}
    for location, values in read_objects(path, what, list(model.model_fields), problems):
        document = read(values, location, problems)
        if document and problems.is_new(repr(document.doc_id), location, seen):
            found[document.doc_id] = document
    return found


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


def read_annotations(path: Path, problems: Problems = RAISE) -> dict[QueryId, Json]:
    """Read annotations, keyed by interaction; empty if there is no such file.

    Keys other than interaction_id are optional, and null values are dropped. `region` is
    x1, y1, x2, y2 in pixels of an image of `image_size` (width, height). Problems are unusable
    lines and duplicate interactions; without `problems` the first raises `VragError`.
    """
    found: dict[QueryId, Json] = {}
    seen: dict[str, str] = {}
    if path.is_file():
        keys = list(Annotations.model_fields)
        for location, values in read_objects(path, "file of marks", keys, problems):
            row = validate(Annotations, values, location, problems)
            if row and problems.is_new(f"marks of {row.interaction_id}", location, seen):
                found[row.interaction_id] = _given(values)
    return found


def _given(values: Json) -> Json:
    """The annotations without the interaction and without nulls."""
    return {
        key: value for key, value in values.items() if value is not None and key != "interaction_id"
    }


def write_annotations(path: Path, marks: Mapping[QueryId, JsonView]) -> None:
    """Write annotations for `read_annotations`; raises `OSError` if that fails."""
    rows = [{"interaction_id": name, **given} for name, given in marks.items()]
    write_file(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def read_diagnostic(folder: Path | str) -> dict[QueryId, Json]:
    """Read the annotations in `DIAGNOSTIC`'s parquet files, in a folder or its folder "data".

    They are entity (the target object's name), reference_query (the question without its
    image), region and image_size. Raises `VragError` if there are no such files, and for a
    row of another form.
    """
    patterns = ("test-*.parquet", "data/test-*.parquet")
    found: dict[QueryId, Json] = {}
    for shard in find_shards(folder, patterns, f"those of {DIAGNOSTIC}"):
        for location, row in read_shard(shard, ("id", "metadata"), DIAGNOSTIC):
            given = row["metadata"]
            values = {
                "interaction_id": row["id"],
                "entity": given.get("target_object_name") or None,
                "reference_query": given.get("textual_only_question") or None,
                "region": given.get("target_roi_bbox") or None,
                "image_size": given.get("image_size") or None,
            }
            if checked := validate(Annotations, values, location, Problems()):
                found[checked.interaction_id] = _given(values)
    return found
