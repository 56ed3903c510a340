"""Converts a published Chroma index to plain files: vectors, and one line per document.

The indexes are published as Chroma databases, which this kit does not open. Convert them
once where chromadb is installed, with Python 3.10 or later; the kit is not needed.
Opening a database may change it, so pass a copy:

    python vrag_kit/retrieval/chroma.py COPY FOLDER --encoder NAME

`chroma_service` searches FOLDER exactly, whereas Chroma's own search is approximate.
FOLDER then holds:

    entries.jsonl, or pages.jsonl    the documents, as the index readers expect them
    vectors/manifest.json            the encoder, and the contents of the files below
    vectors/pieces.txt               id of each vector, one per line: a document or a chunk
    vectors/<number>.npy             float32, unit length, shape (rows, d)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from vrag_kit.log import logger

COLLECTIONS = {"image_embeddings": "image", "web_search_embeddings": "text"}
"""Collection name → the query part, image or text, that searches it."""
DOCUMENTS = {"image": "entries.jsonl", "text": "pages.jsonl"}
BATCH, SHARD = 1_000, 65_536  # rows read at once, and rows a file


class ChromaRow(NamedTuple):
    """One row of a Chroma collection."""

    id: str
    vector: Any  # numbers: a list, or a row of an array of numpy, which may not be there yet
    metadata: Mapping[str, Any]  # Any: texts, as Chroma gives them back


def main() -> None:
    """Convert the database given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("database", type=Path, help="folder with chroma.sqlite3")
    parser.add_argument("folder", type=Path, help="where the files go; must not exist")
    parser.add_argument("--encoder", required=True, help="the model that made the vectors")
    given = parser.parse_args()
    if not (given.database / "chroma.sqlite3").is_file():
        sys.exit(f"{given.database}: holds no chroma.sqlite3; give the folder of a database.")
    name, rows = read_chroma(given.database)
    logger.info(write_index(rows, given.folder, COLLECTIONS[name], given.encoder))


def read_chroma(database: Path) -> tuple[str, Iterator[ChromaRow]]:
    """Returns the collection's name and an iterator over its rows, ordered by id."""
    import chromadb

    client = chromadb.PersistentClient(path=str(database))
    # older versions list collections, some list their names
    names = {getattr(each, "name", each) for each in client.list_collections()}
    found = sorted(names & COLLECTIONS.keys())
    if len(found) != 1:
        known = " or ".join(COLLECTIONS)
        sys.exit(f"{database}: collections {sorted(names)}; expected one named {known}.")
    collection = client.get_collection(found[0])

    def rows() -> Iterator[ChromaRow]:
        ids = sorted(collection.get(include=[])["ids"], key=_in_order)
        for start in range(0, len(ids), BATCH):
            wanted = ids[start : start + BATCH]
            got = collection.get(ids=wanted, include=["embeddings", "metadatas"])
            by_id = dict(zip(got["ids"], zip(got["embeddings"], got["metadatas"])))  # noqa: B905
            yield from (ChromaRow(each, *by_id[each]) for each in wanted)

    return found[0], rows()


def write_index(rows: Iterable[ChromaRow], folder: Path, by: str, encoder: str) -> str:
    """Write rows to `folder`, which is created only when complete; returns a summary line. `by`:
    "image" or "text", the query part that searches the index.

    Ends the program for an id or vector that cannot be used, naming the row, and if `folder`
    exists.
    """
    if folder.exists():
        sys.exit(f"{folder}: is there already; name another folder, or remove it.")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    (part / "vectors").mkdir(parents=True)
    documents = part / DOCUMENTS[by]
    shards = _Shards(part / "vectors")
    written: set[str] = set()
    with (
        documents.open("w", encoding="utf-8") as lines,
        (part / "vectors" / "pieces.txt").open("w", encoding="utf-8") as pieces,
    ):
        for row in rows:
            piece = _entry(row) if by == "image" else _page(row)
            if piece.document not in written:
                lines.write(json.dumps(piece.line, ensure_ascii=False) + "\n")
                written.add(piece.document)
            pieces.write(piece.id + "\n")
            shards.add(row)
    shards.close()
    told = {
        "format": 1,
        "by": by,
        "encoder": encoder,
        "dim": shards.dim,
        "documents": {"file": documents.name, "sha256": _sha256(documents)},
        "pieces": [{"file": "pieces.txt", "sha256": _sha256(part / "vectors" / "pieces.txt")}],
        "shards": shards.written,
    }
    text = json.dumps(told, indent=2)
    (part / "vectors" / "manifest.json").write_text(text, encoding="utf-8")
    part.rename(folder)
    count = sum(int(shard["rows"]) for shard in shards.written)
    return f"{folder}: {count:,} vectors of {len(written):,} documents, by {encoder}"


class _Piece(NamedTuple):
    """A converted row."""

    id: str
    document: str
    line: dict[str, Any]  # Any: what JSON holds


class _Shards:
    """Files of vectors at unit length, written one after another."""

    def __init__(self, folder: Path) -> None:
        self.written: list[dict[str, Any]] = []  # Any: file, rows and hash
        self.dim = 0
        self._folder = folder
        self._rows: list[Any] = []  # Any: arrays of numpy

    def add(self, row: ChromaRow) -> None:
        import numpy as np

        vector = np.asarray(row.vector, np.float32)
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0:
            sys.exit(f"row {row.id!r}: its vector has length {length}; expected a direction.")
        if self.dim not in (0, len(vector)):
            sys.exit(f"row {row.id!r}: {len(vector)} components; {self.dim} before.")
        self.dim = len(vector)
        self._rows.append(vector / np.float32(length))
        if len(self._rows) == SHARD:
            self.close()

    def close(self) -> None:
        import numpy as np

        if self._rows:
            path = self._folder / f"{len(self.written):04d}.npy"
            np.save(path, np.stack(self._rows), allow_pickle=False)
            stated = {"file": path.name, "rows": len(self._rows), "sha256": _sha256(path)}
            self.written.append(stated)
            self._rows = []


def _entry(row: ChromaRow) -> _Piece:
    """Converts an image: its entities with their attributes."""
    if not row.id.isdecimal():
        sys.exit(f"row {row.id!r}: expected the number of a picture as its id.")
    names = _json(row.metadata.get("entities"))
    told = _json(row.metadata.get("info"))
    entities = []
    for name in filter(None, names if isinstance(names, list) else [names]):
        found = told.get(str(name)) if isinstance(told, dict) else told
        attributes = found if isinstance(found, dict) or not found else {"info": str(found)}
        entities.append({"entity_name": str(name), "entity_attributes": attributes or None})
    line = {
        "index": int(row.id),
        "image": None,
        "image_url": row.metadata.get("image_url") or "",
        "entities": entities,
    }
    name = f"kg-{int(row.id)}"
    return _Piece(name, name, line)


def _page(row: ChromaRow) -> _Piece:
    """Converts a chunk of a page."""
    keys = ("page_url", "page_name", "page_snippet", "page_result", "page_last_modified")
    line = {key: row.metadata.get(key) for key in keys}
    url = str(line["page_url"] or "").strip()
    if not url:
        sys.exit(f"row {row.id!r}: no page_url in its metadata; expected the page's address.")
    chunk = re.search(r"_chunk_(\d+)$", row.id)
    number = chunk[1] if chunk else "0"
    page = re.sub(r"[\s\x00-\x1f\x7f]", lambda found: quote(found[0], safe=""), url)
    return _Piece(f"{page}_chunk_{number}", page, line)


def _json(stored: Any) -> Any:  # Any: whatever JSON holds
    """Returns a field parsed as JSON, or the text itself where it is not JSON."""
    try:
        return json.loads(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored


def _in_order(name: str) -> tuple[int, str]:
    return (int(name) if name.isdecimal() else 0, name)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose names are not those of libraries
    main()
