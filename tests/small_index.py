"""A small index of pictures, one of pages, and the services that search them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tiny_retrievers as tiny

from vrag_kit.benchmarks.datasets.crag_mm_index import (
    page_chunks,
    read_image_index,
    read_web_index,
)
from vrag_kit.papers.crag_mm.chroma import ChromaRow, convert_index
from vrag_kit.retrieval import SearchService, image_service, load_encoder, text_service
from vrag_kit.retrieval.services import chunk_documents, document_of_chunk
from vrag_kit.types import Document, Query
from vrag_kit.workspace import Workspace

FULL = " ".join(f"word{number}" for number in range(1100))
PAGES = [
    ("https://a.org/heron", "Heron", "A grey bird of the fen.", "It eats fish. " + FULL),
    ("https://a.org/the owl", "Owl", "A brown bird of the night.", ""),
    ("https://b.org/http", "HTTP", "A http link is no bird.", None),
    ("https://b.org/moth", "Moth", "A red moth, banded with white.", "Larvae eat nettles."),
]
TEXTS = ["grey bird", "brown bird at night", "http link: is it a bird?", "nettles"]


@dataclass(frozen=True)
class Small:
    """What is searched, by what, and where files may go."""

    entries: dict[str, Document]
    pages: dict[str, Document]
    clip: str
    bert: dict[str, Any]
    root: Path

    @property
    def at(self) -> Workspace:
        return Workspace(cache_dir=self.root / "cache")

    def without_first(self) -> Small:
        """The same, one entry and one page less."""
        entries = dict(list(self.entries.items())[1:])
        return replace(self, entries=entries, pages=dict(list(self.pages.items())[1:]))

    def queries(self) -> list[Query]:
        """Each has a text and a picture."""
        pairs = enumerate(zip(TEXTS, self.entries.values(), strict=False))
        return [Query(query_id=f"q{n}", text=text, image=entry.image) for n, (text, entry) in pairs]


def build(documents: list[Document], root: Path) -> Small:
    """The small index; `documents` lend their pictures."""
    entries, pages = {}, {}
    for number, document in enumerate(documents):
        name, url = f"kg-{number}", {"url": f"https://pictures.org/{number}.jpg"}
        entries[name] = Document(doc_id=name, image=document.image, metadata=url)
    for url, name, snippet, full in PAGES:
        told = {"page_name": name, "page_url": url, "page_result": full}
        doc_id = url.replace(" ", "%20")
        pages[doc_id] = Document(doc_id=doc_id, text=snippet, metadata=told)
    bert = {"model": str(tiny.bert(root / "bert")), "pooling": "mean", "normalize": True}
    return Small(entries, pages, str(tiny.clip(root / "clip")), bert, root)


def rows(small: Small, by: str) -> list[tuple[str, Any, dict[str, Any]]]:
    """(id, vector, metadata) of every picture or chunk, as Chroma gives them back from
    an index in the official layout.
    """
    found = []
    if by == "image":
        vectors = tiny.embed(load_encoder(small.clip), list(small.entries.values()))
        for entry, vector in zip(small.entries.values(), vectors, strict=True):
            told = {"image_url": entry.metadata["url"], "entities": '["Heron"]', "info": "{}"}
            found.append((entry.doc_id.removeprefix("kg-"), vector, told))
        return found
    chunks = list(chunk_documents(small.pages.values(), page_chunks))
    vectors = tiny.embed(load_encoder(small.bert), chunks)
    for chunk, vector in zip(chunks, vectors, strict=True):
        page = small.pages[document_of_chunk(chunk.doc_id)]
        url = page.metadata["page_url"]
        name = chunk.doc_id.replace(page.doc_id, url)
        told = {"page_url": url, "page_name": page.metadata["page_name"], "page_snippet": page.text}
        found.append((name, vector, told))
    return found


def converted(small: Small, by: str) -> Path:
    """A converted index of the same pictures or pages, written once."""
    folder = small.root / f"converted-{by}-{'-'.join(small.entries)}"
    if not folder.exists():
        entry = small.clip if by == "image" else small.bert
        convert_index((ChromaRow(*row) for row in rows(small, by)), folder, by, entry)
    return folder


def converted_service(small: Small, by: str) -> SearchService:
    """Exact search in the converted index."""
    return service_of(small, by, converted(small, by))


def service_of(small: Small, by: str, folder: Path) -> SearchService:
    """Exact search in a converted index of the same retrievers."""
    at = Workspace(cache_dir=folder / "embeddings")
    if by == "image":
        return image_service(read_image_index(folder), small.clip, at)
    return text_service(read_web_index(folder), small.bert, at, chunks=page_chunks)


def own_text_service(small: Small, entry: Any) -> SearchService:
    """Search among the chunks of the pages."""
    return text_service(small.pages, entry, small.at, chunks=page_chunks)
