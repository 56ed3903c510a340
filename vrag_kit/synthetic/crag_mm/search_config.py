"""The two searches of CRAG-MM as a notebook's parameters name them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import SPLITS
from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.chroma import EMBEDDINGS
from vrag_kit.retrieval import (
    SearchService,
    cached_service,
    image_service,
    text_service,
)
from vrag_kit.synthetic.crag_mm.indexes import index_folders
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

SOURCES = ("image_search", "web_search")
"""What documents of the two indexes are known by."""


@dataclass(frozen=True, slots=True)
class SearchServices:
    """What a benchmark's turns are searched with; None where there is nothing to search."""

    images: SearchService | None
    """Finds entries of the knowledge graph by a picture."""
    web: SearchService | None
    """Finds pages by a text."""


def open_services(
    benchmark: Benchmark,
    images: Entry,
    web: Entry,
    cache_dir: Path | str,
    *,
    indexes: str = "",
    device: str = "cpu",
) -> SearchServices:
    """The searches of a benchmark's own documents: `images` is a retriever, asked by a
    picture; `web` one that is asked by text, "bm25" or "words".

    Where the folder `indexes` holds a converted official index of the benchmark's split, its
    vectors are searched, and vectors of queries are cached there. Search results are cached in
    `cache_dir`, as are other vectors. Raises `VragError` as `image_service` and `text_service` do.
    """
    folders: tuple[Path | None, Path | None] = (None, None)
    if indexes:
        folders = index_folders(project_path(indexes), _split(benchmark))
    opened: list[SearchService | None] = []
    for source, entry, folder in zip(SOURCES, (images, web), folders, strict=True):
        documents = {
            name: document
            for name, document in benchmark.corpus.items()
            if document.metadata.get("source") == source
        }
        vectors: Path | str = cache_dir
        if folder is not None and (folder / EMBEDDINGS).is_dir():
            vectors = folder / EMBEDDINGS
        if not documents:
            opened.append(None)
            continue
        if source == SOURCES[0]:
            service = image_service(documents, entry, vectors, device=device)
        else:
            service = text_service(documents, entry, vectors, chunks=page_chunks, device=device)
        opened.append(cached_service(service, cache_dir))
    return SearchServices(*opened)


def _split(benchmark: Benchmark) -> str:
    """The split that a benchmark's name ends with."""
    for split in SPLITS:
        if benchmark.name.endswith(split.replace("_", "-")):
            return split
    raise VragError(
        f"{benchmark.name}: its name does not end with a split, so that its indexes are not known;"
        f" expected one of {', '.join(SPLITS)}. Open it by open_single_turn or open_multi_turn."
    )
