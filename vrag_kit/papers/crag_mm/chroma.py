"""Converts a published index, a Chroma database, into documents and cached embeddings.

    pip install chromadb
    python -m vrag_kit.papers.crag_mm.chroma COPY FOLDER --encoder NAME

NAME is the retriever that made the vectors, or a JSON mapping of it and its options, the same as in
the parameters. Opening a database may change it, so pass a copy. FOLDER then holds:

    entries.jsonl, or pages.jsonl    the documents, as the index readers expect them
    embeddings/                      their vectors at unit length, in the format of every
                                     embedding cache, so that a search embeds nothing

`image_service` and `text_service` over these documents take FOLDER/embeddings as their `cache_dir`.
An index has a cache of its own, since its ids are numbers that occur in each split. The search is
exact, whereas Chroma's own is approximate.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vrag_kit.benchmarks.datasets import crag_mm_index as index
from vrag_kit.benchmarks.rows import RAISE
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.log import logger
from vrag_kit.retrieval.embedding_cache import batched
from vrag_kit.retrieval.encoders.base import validate_embeddings
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.services import chunk_id, with_query_modality
from vrag_kit.retrieval.shards import documents_folder, write_shard
from vrag_kit.types import Document, Json

COLLECTIONS = {"image_embeddings": "image", "web_search_embeddings": "text"}
"""Collection name → the modality of the queries that search it."""
EMBEDDINGS = "embeddings"
"""The folder of an index's embedding cache."""
SHARD = 2048
"""Rows that are read, and vectors that are written, at once."""


class ChromaRow(NamedTuple):
    """One row of a Chroma collection."""

    id: str
    vector: Any  # numbers: a list or an array
    metadata: Mapping[str, Any]  # Any: texts and numbers


def read_chroma(database: Path) -> tuple[str, Iterator[ChromaRow]]:
    """Returns the modality of the queries that search a database, and its rows in their order.
    Raises `VragError` for a folder without a database, or without one of `COLLECTIONS`.
    """
    if not (database / "chroma.sqlite3").is_file():
        raise VragError(f"{database}: holds no chroma.sqlite3; expected the folder of a database.")
    import chromadb

    client = chromadb.PersistentClient(path=str(database))
    names = sorted(each.name for each in client.list_collections())
    found = [name for name in names if name in COLLECTIONS]
    if len(found) != 1:
        known = " or ".join(COLLECTIONS)
        raise VragError(f"{database}: found collections {names}; expected one named {known}.")
    return COLLECTIONS[found[0]], _rows(client.get_collection(found[0]))


def _rows(collection: Any) -> Iterator[ChromaRow]:  # Any: chromadb's own class
    for start in range(0, collection.count(), SHARD):
        part = {"limit": SHARD, "offset": start, "include": ["embeddings", "metadatas"]}
        got = collection.get(**part)
        yield from map(ChromaRow, got["ids"], got["embeddings"], got["metadatas"])


def convert_index(rows: Iterable[ChromaRow], folder: Path, modality: str, entry: Entry) -> str:
    """Writes rows to `folder`, which is created only when complete; returns a summary. `entry` is
    the retriever that made the vectors, `modality` ("image" or "text") that of the queries that
    search them. Vectors are scaled to unit length.

    Raises `VragError` for a row whose id, metadata or vector cannot be used, for two rows of one
    image or chunk, and if `folder` exists.
    """
    if folder.exists():
        raise VragError(f"{folder}: exists already; name another folder, or remove it.")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    encoder = open_encoder(with_query_modality(modality, entry))
    cache = documents_folder(encoder, part / EMBEDDINGS)
    read = _entry if modality == "image" else _chunk
    lines: dict[str, Json] = {}
    converted: set[str] = set()
    for batch in batched(rows, SHARD):
        pieces = [read(row, lines) for row in batch]
        for row, piece in zip(batch, pieces, strict=True):
            if piece.doc_id in converted:
                raise VragError(f"row {row.id!r}: found {piece.doc_id!r} again; expected it once.")
            converted.add(piece.doc_id)
        ids = [piece.doc_id for piece in pieces]
        vectors = np.array([row.vector for row in batch], np.float32)
        with np.errstate(invalid="ignore"):
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        validate_embeddings(vectors, ids, encoder)
        write_shard(cache, ids, list(map(encoder.modalities.stamp, pieces)), vectors)
    documents = part / (index.ENTRIES if modality == "image" else index.PAGES)
    write_file(documents, (f"{json.dumps(line)}\n" for line in lines.values()))
    part.rename(folder)
    return f"{folder}: {len(converted):,} vectors of {len(lines):,} documents by {encoder.name}"


def _entry(row: ChromaRow, lines: dict[str, Json]) -> Document:
    """The document of an image, whose line, entities with their attributes, is added."""
    names, info = (_json(row.metadata.get(key)) for key in ("entities", "info"))
    names = [name for name in (names if isinstance(names, list) else [names]) if name]
    if not isinstance(info, dict):  # a text about the entity
        info = {name: {"info": str(info)} for name in names if info}
    entities = [{"entity_name": name, "entity_attributes": info.get(name)} for name in names]
    number = int(row.id) if row.id.isdecimal() else row.id
    line: Json = {"index": number, "image": None, "entities": entities}
    line["image_url"] = row.metadata.get("image_url") or ""
    document = index.entry_document(line, f"row {row.id!r}", RAISE, Path())
    if document is None:
        raise ValueError(row.id)
    lines[document.doc_id] = line
    return document


def _chunk(row: ChromaRow, lines: dict[str, Json]) -> Document:
    """A chunk of a page, whose number is added to the line of its page."""
    keys = ("page_url", "page_name", "page_snippet", "page_result", "page_last_modified")
    found = re.search(r"_chunk_(\d+)$", row.id)
    number = int(found[1]) if found else 0
    line: Json = {key: row.metadata.get(key) for key in keys} | {"chunks": [number]}
    page = index.page_document(line, f"row {row.id!r}", RAISE)
    if page is None:
        raise ValueError(row.id)
    known = lines.setdefault(page.doc_id, line)
    known["chunks"] = sorted({*known["chunks"], number})
    return Document(doc_id=chunk_id(page, number), text=index.page_chunks(page)[number])


def _json(stored: Any) -> Any:  # Any: whatever JSON holds
    """Returns a field parsed as JSON, or the text itself where it is not JSON."""
    try:
        return json.loads(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored


def main() -> None:
    """Convert the database given on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("database", type=Path, help="folder with chroma.sqlite3")
    parser.add_argument("folder", type=Path, help="where the files go; must not exist")
    parser.add_argument("--encoder", required=True, help="the retriever that made the vectors")
    given = parser.parse_args()
    entry = json.loads(given.encoder) if given.encoder.startswith("{") else given.encoder
    try:
        modality, rows = read_chroma(given.database)
        logger.info(convert_index(rows, given.folder, modality, entry))
    except VragError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
