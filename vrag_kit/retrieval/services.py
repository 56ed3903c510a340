"""Search services: image search by similarity, and text search among chunks of documents.

A service searches its own documents by the image or by the text of a query, and returns a run
(see `retrieval.runs`). `cached_service` stores results, `with_regions` searches by crops.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice, product
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.config import Entry, check_choice, custom_spec, read_entry
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.log import logger
from vrag_kit.retrieval.dense import dense_run
from vrag_kit.retrieval.embedding_cache import PlannedEmbedding, embed_documents
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.hybrid import WordScores, bm25_index, lexical_run, tfidf_index
from vrag_kit.retrieval.runs import make_run
from vrag_kit.types import DocId, Document, LazyImage, Query
from vrag_kit.workspace import Workspace

Ranker = Callable[[Sequence[Query], int], pd.DataFrame]
"""Returns the best documents of one or more queries as a run, at most k per query."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchService:
    """Searches its own documents for queries."""

    name: str
    """Short name for tables and folders."""
    fingerprint: str
    """Hash of everything that determines the results: documents, and how they are compared. ""
    where that is unknown; such results are not cached.
    """
    modality: str
    """The only part of a query that is searched: "image" or "text"."""
    corpus: Mapping[DocId, Document]
    """All documents that the service can find."""
    ranker: Ranker

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Returns the best documents of each query as a run, at most k per query. Ties are ordered
        by doc_id descending; at the cutoff of a text search, by the id of the chunk.

        Empty for no query. Raises `VragError` for a query without the image that is searched.
        """
        return self.ranker(queries, k) if queries else make_run([])


def image_service(
    documents: Mapping[DocId, Document], entry: Entry, at: Workspace
) -> SearchService:
    """Returns a search among the images of `documents` by the image of a query alone. Each image is
    encoded once, and its vector cached; a cached one is found without the image.

    `entry` is a retriever (`load_encoder`), whose query side is set to encode the image alone, as
    it encodes the documents. The score is the inner product. Raises `VragError` as `load_encoder`
    does, and for no documents.
    """
    return _dense("image", documents, list(documents.values()), entry, at)


Chunks = Callable[[Document], Sequence[str | None]]
"""Cuts a document into numbered texts; "" is no chunk, None one whose text is unknown."""


def text_service(
    documents: Mapping[DocId, Document],
    entry: Entry,
    at: Workspace,
    *,
    chunks: Chunks = lambda document: [document.text or ""],
) -> SearchService:
    """Returns a search among chunks of `documents` by the text of a query alone. By default, a
    document's text is its only chunk. A document has the score of its best chunk. The k best chunks
    are deduplicated by document, and fewer than k documents may remain.

    `entry` is "bm25" (`bm25_index`), "words" (cosine of tf-idf weights, `tfidf_index`), or a
    retriever (`load_encoder`), whose vectors are cached. The first two do not find
    chunks that share no word with the question. A chunk of unknown text is searched by its cached
    vector. Raises `VragError` as `load_encoder` does, for no documents, and for one without chunks.
    """
    pieces = list(chunk_documents(documents.values(), chunks))
    check_choice(entry, WORD_INDEXES, "retriever")
    if not isinstance(entry, str) or entry not in WORD_INDEXES:
        return _dense("text", documents, pieces, entry, at)
    texts = {piece.doc_id: piece.text for piece in pieces if piece.text}

    def make_ranker() -> Ranker:
        scores, ids = WORD_INDEXES[entry](texts.values()), list(texts)
        return lambda queries, k: lexical_run(queries, ids, scores, k)

    return _index_service(entry, entry, "text", documents, texts.items(), make_ranker)


WORD_INDEXES: dict[str, Callable[[Iterable[str]], WordScores]] = {
    "bm25": bm25_index,
    "words": tfidf_index,
}
"""Lexical indexes, which need no model."""
_SERVICE_VERSION = 1
"""Version of a service's chunks and scores."""
_CHUNK = "_chunk_"


def chunk_documents(documents: Iterable[Document], chunks: Chunks) -> Iterator[Document]:
    """Yields the chunks of documents in order, with the id "<document>_chunk_<number>". Raises
    `VragError` for a document without chunks.
    """
    for document in documents:
        found = [(number, text) for number, text in enumerate(chunks(document)) if text != ""]
        if not found:
            raise VragError(f"document {document.doc_id!r} is empty; expected a text to search.")
        for number, text in found:
            yield Document(doc_id=chunk_id(document, number), text=text)


def chunk_id(document: Document, number: int) -> DocId:
    """Returns the id of a document's chunk: "<document>_chunk_<number>"."""
    return f"{document.doc_id}{_CHUNK}{number}"


def document_of_chunk(chunk_id: str) -> DocId:
    """Returns the id of the document that a chunk was cut from."""
    return chunk_id.rpartition(_CHUNK)[0]


def with_query_modality(modality: str, entry: Entry) -> Entry:
    """Returns the entry with the option `query` set to "image" or "text". The entry of a custom
    class, which decides itself what it encodes, is unchanged.

    Raises `VragError` where the entry sets another part.
    """
    if custom_spec(entry):
        return entry
    spec, options = read_entry(entry, "retriever")
    if (part := options.get("query", modality)) != modality:
        raise VragError(f"retriever {spec!r}: query is {part!r}; expected {modality!r}.")
    return {"model": spec, **options, "query": modality}


def _dense(
    modality: str,
    documents: Mapping[DocId, Document],
    pieces: Sequence[Document],
    entry: Entry,
    at: Workspace,
) -> SearchService:
    entry = with_query_modality(modality, entry)
    if (dry_run := current_dry_run()) is not None:
        dry_run.corpora.append(PlannedEmbedding(entry, pieces, at.cache_dir, at.device))
    encoder = open_encoder(entry, device=at.device)

    def make_ranker() -> Ranker:
        return partial(dense_run, encoder, embed_documents(encoder, pieces, at.cache_dir))

    def version(piece: Document) -> str:
        known = piece.image is not None or piece.text
        return encoder.modalities.stamp(piece) if known else json.dumps(piece.metadata)

    versions = ((piece.doc_id, version(piece)) for piece in pieces)
    return _index_service(
        encoder.name, encoder.fingerprint, modality, documents, versions, make_ranker
    )


def _index_service(
    name: str,
    key: str,
    modality: str,
    documents: Mapping[DocId, Document],
    versions: Iterable[tuple[str, str]],
    make_ranker: Callable[[], Ranker],
) -> SearchService:
    """Returns a service that ranks documents by their best chunk. `make_ranker` returns a ranker of
    images or chunks; it is called at the first search. `key` and `versions`, of each image or
    chunk, determine the results.
    """
    digest = hashlib.sha256(json.dumps([_SERVICE_VERSION, key]).encode())
    for version in versions:
        digest.update(json.dumps(version).encode())
    document_of = document_of_chunk if modality == "text" else str
    make_once = cache(make_ranker)

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        run = make_once()(queries, k)
        best = run.assign(doc_id=run["doc_id"].map(document_of))
        return make_run(best.drop_duplicates(["query_id", "doc_id"]))

    return SearchService(
        name=name,
        fingerprint=digest.hexdigest(),
        modality=modality,
        corpus=documents,
        ranker=rank,
    )


def cached_service(service: SearchService, folder: Path | str) -> SearchService:
    """Returns a service that caches search results in `folder`, and reads them back bit for bit.
    Queries with the same text or image are searched once.

    A dry run searches nothing: if results are missing, it returns arbitrary documents, k per query.
    Raises `VragError` for a service without fingerprint; searching raises it where results cannot
    be read or stored.
    """
    if not service.fingerprint:
        raise VragError(
            f"search by {service.name}: its results depend on more than the service; cache that."
        )
    path = project_path(folder) / "replies.sqlite"

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        keys = {query.query_id: _reply_key(service, query, k) for query in queries}
        known: dict[str, Sequence[tuple[DocId, float]]] = {}
        if path.exists():
            with _open_replies(path) as stored:
                find = "SELECT key, hits FROM replies WHERE key = ?"
                rows = [stored.execute(find, (key,)).fetchone() for key in {*keys.values()}]
            known = {key: json.loads(hits) for key, hits in filter(None, rows)}
        by_key = {keys[query.query_id]: query for query in queries}
        new = {key: query for key, query in by_key.items() if key not in known}
        dry_run = current_dry_run()
        if new and dry_run is not None:
            dry_run.any_order.add(service.name)
            first = list(islice(service.corpus, k))
            return make_run((query.query_id, name, 1.0) for query, name in product(queries, first))
        if new:
            found = service.search(list(new.values()), k)
            hits = dict(list(found.groupby("query_id")))
            for key, query in new.items():
                part = hits.get(query.query_id, found[:0])
                known[key] = list(zip(part["doc_id"], part["score"], strict=True))
            with _open_replies(path) as stored:
                rows = [(key, json.dumps(known[key])) for key in new]
                stored.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
        logger.info(f"search by {service.name}: {len(new):,} of {len(by_key):,} searches are new")
        rows = []
        for query_id, key in keys.items():
            rows += [(query_id, *hit) for hit in known[key]]
        return make_run(rows)

    return replace(service, ranker=rank)


def _reply_key(service: SearchService, query: Query, k: int) -> str:
    content = query.text
    if service.modality == "image" and query.image is not None:
        content = pixel_hash(query.image.open())
    determining = json.dumps([service.fingerprint, k, service.modality, content])
    return hashlib.sha256(determining.encode()).hexdigest()


@contextmanager
def _open_replies(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields the database of replies within a transaction."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(path, timeout=60)) as stored, stored:
            stored.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, hits TEXT)")
            yield stored
    except sqlite3.Error as error:
        raise VragError(
            f"{path}: replies cannot be read or stored ({error}); remove it to search again."
        ) from error


Box = tuple[float, ...]
"""Left, upper, right and lower edge, as fractions of the image's width and height."""
Regions = Callable[[Query], Sequence[Box]]
WHOLE_IMAGE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Crop:
    """A region of an image; implements `LazyImage`."""

    image: LazyImage
    box: Box

    @property
    def where(self) -> str:
        """The image's `where`, followed by the region."""
        return f"{self.image.where} {','.join(f'{edge:.6g}' for edge in self.box)}"

    @property
    def stamp(self) -> str:
        """The image's `stamp`, followed by the region."""
        return f"{self.image.stamp} {','.join(f'{edge:.6g}' for edge in self.box)}"

    def open(self) -> Image.Image:
        """Returns the region, with every pixel that it touches."""
        image = self.image.open()
        edges = np.multiply(self.box, image.size * 2)
        start = np.maximum(np.floor(edges[:2]), 0)
        end = np.minimum(np.ceil(edges[2:]), image.size)
        return image.crop((*start.astype(int), *end.astype(int)))

    def data(self) -> bytes:
        """Returns the region as PNG."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()


def with_regions(service: SearchService, regions: Regions, *, margin: float = 0.0) -> SearchService:
    """Returns a service that searches by the regions of each query's image, or by the whole image
    if it has none. A document has its best score over the regions. A `margin` widens them on each
    side by that share of their own width and height, within the image.

    Its fingerprint is "", as regions are unknown: give it a `cached_service`.
    """

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        crops: list[Query] = []
        query_of: dict[str, str] = {}
        for query in queries:
            for number, region in enumerate(regions(query) or [WHOLE_IMAGE]):
                box = _widened(region, margin)
                image = (
                    Crop(query.image, box) if query.image and box != WHOLE_IMAGE else query.image
                )
                crops.append(replace(query, query_id=f"{query.query_id}#{number}", image=image))
                query_of[crops[-1].query_id] = query.query_id
        run = service.search(crops, k)
        run = run.assign(query_id=run["query_id"].map(query_of))
        best = run.groupby(["query_id", "doc_id"], sort=False, as_index=False)["score"].max()
        ranked = make_run(best)
        return ranked[ranked["rank"] <= k].reset_index(drop=True)

    name = f"{service.name}-by-region" + (f"-and-{margin:g}" if margin else "")
    return replace(service, name=name, fingerprint="", ranker=rank)


def annotated_region(query: Query) -> list[Box]:
    """Returns the annotated region of a query's image, or an empty list if there is none. It is
    `region` in the metadata: left, upper, right, lower in pixels of an image of `image_size`, by
    default the image's own size.
    """
    region = query.metadata.get("region")
    if not region or query.image is None:
        return []
    size = query.metadata.get("image_size") or query.image.open().size
    pixels = zip(region, (*size, *size), strict=True)
    return [tuple(float(edge) / side for edge, side in pixels)]


def _widened(box: Box, margin: float) -> Box:
    """Returns the part of a box with its margin that is within the image."""
    beyond = margin * np.subtract(box[2:], box[:2])
    edges = np.add(box, [*-beyond, *beyond])
    return tuple(edges.clip(0, 1).tolist())
