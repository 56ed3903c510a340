"""Search services: image search by similarity, and page search by text.

Services over an index of the kit or a converted one have the same interface, and return a run over
their documents.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol

import pandas as pd
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.dry_run import DryRun, current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.options import Entry
from vrag_kit.own_classes import custom_spec
from vrag_kit.retrieval.dense import FlatRetriever
from vrag_kit.retrieval.embedding_cache import embed_documents, note_planned_embedding
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.hybrid import Bm25Index, TfidfIndex
from vrag_kit.retrieval.runs import find_run_file, lexical_run, make_run
from vrag_kit.types import Benchmark, DocId, Document, LazyImage, Query
from vrag_kit.workspace import display_path


class SearchService(Protocol):
    """Searches its own documents for queries."""

    @property
    def name(self) -> str:
        """Short name for tables and folders."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines the results: documents, and how they are compared."""

    @property
    def reads(self) -> str:
        """The only part of a query that is searched: "image" or "text"."""

    @property
    def corpus(self) -> Mapping[DocId, Document]:
        """All documents that the service can find."""

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Returns the best documents of each query as a run (see `retrieval.runs`), at most k per
        query. Ties are ordered by doc_id descending, also at the cutoff.

        Empty for no query. Raises `VragError` when k is below 1, for two queries with the same id,
        and for a query without the part that is searched.
        """


@dataclass(frozen=True)
class ServiceWrapper:
    """A service that wraps another, and by default has its name, fingerprint and documents."""

    service: SearchService

    @property
    def name(self) -> str:
        """Name of the wrapped service."""
        return self.service.name

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the wrapped service."""
        return self.service.fingerprint

    @property
    def reads(self) -> str:
        """Query part that the wrapped service reads."""
        return self.service.reads

    @property
    def corpus(self) -> Mapping[DocId, Document]:
        """Documents of the wrapped service."""
        return self.service.corpus


Index = Callable[[Sequence[Query], int], pd.DataFrame]
"""Ranks indexed documents or chunks for queries, as `FlatRetriever.search` does."""


@dataclass(frozen=True, kw_only=True, repr=False)
class IndexService:
    """A search service over an index that is built at the first search."""

    name: str
    fingerprint: str
    reads: str
    corpus: Mapping[DocId, Document]
    make_index: Callable[[], Index]
    document_of: Callable[[str], DocId] = str
    """Returns the document of an indexed piece. The k best pieces are then deduplicated by
    document, and fewer than k documents may remain.
    """

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Implements `SearchService.search`."""
        check_queries(self, queries, k)
        if not queries:
            return make_run([])
        pieces = self._index(queries, k)
        found = pieces.assign(doc_id=pieces["doc_id"].map(self.document_of))
        return make_run(found.drop_duplicates(["query_id", "doc_id"]))

    @cached_property
    def _index(self) -> Index:
        return self.make_index()

    def __repr__(self) -> str:
        return f"IndexService({self.name}, {len(self.corpus):,} documents, by {self.reads})"


def image_service(
    documents: Mapping[DocId, Document], entry: Entry, cache_dir: Path | str, *, device: str = "cpu"
) -> IndexService:
    """Returns a search among the images of `documents` by the image of a query alone. Each image is
    encoded once, and cached in `cache_dir`.

    `entry` is a retriever (`load_encoder`), whose query side is set to encode the image alone, as
    it encodes the documents. The score is the inner product. Raises `VragError` as `load_encoder`
    does, and for no documents.
    """
    told = with_query_modality("image", entry)
    note_planned_embedding(told, documents.values(), cache_dir, device=device)
    encoder = open_encoder(told, device=device)
    return _dense(encoder, documents, list(documents.values()), cache_dir, reads="image")


def text_service(
    documents: Mapping[DocId, Document], entry: Entry, cache_dir: Path | str, *, device: str = "cpu"
) -> IndexService:
    """Returns a search among chunks of pages (`page_chunks`) by the text of a query alone. A page
    has the score of its best chunk.

    `entry` is "bm25" (`Bm25Index`), "words" (cosine of tf-idf weights, `TfidfIndex`), or a
    retriever (`load_encoder`), whose vectors are cached in `cache_dir`. The first two do not find
    chunks that share no word with the question. Raises `VragError` as `load_encoder` does, for no
    documents, and for an empty page.
    """
    chunks = list(page_chunks(documents.values()))
    if not isinstance(entry, str) or entry not in WORD_INDEXES:
        told = with_query_modality("text", entry)
        note_planned_embedding(told, chunks, cache_dir, device=device)
        encoder = open_encoder(told, device=device)
        return _dense(encoder, documents, chunks, cache_dir, reads="text")
    _check_documents(chunks)
    stamps = ((chunk.doc_id, chunk.text or "") for chunk in chunks)
    return IndexService(
        name=entry,
        fingerprint=_fingerprint([_RULE, entry], stamps),
        reads="text",
        corpus=documents,
        make_index=lambda: _word_index(WORD_INDEXES[entry], chunks),
        document_of=page_of_chunk,
    )


WORD_INDEXES: dict[str, type[Bm25Index] | type[TfidfIndex]] = {
    "bm25": Bm25Index,
    "words": TfidfIndex,
}
"""Lexical indexes, which need no model."""
_RULE = 1
"""Version of a service's chunks and scores."""


def check_queries(service: SearchService, queries: Sequence[Query], k: int) -> None:
    """Raise `VragError` for k below 1, a repeated id, or a query without the searched part."""
    if k < 1:
        raise VragError(f"search by {service.name}: k is {k}; expected 1 or more.")
    seen: set[str] = set()
    for query in queries:
        if query.query_id in seen:
            raise VragError(
                f"search by {service.name}: query {query.query_id!r} is asked twice at once;"
                " expected each id once."
            )
        seen.add(query.query_id)
        there = query.image is not None if service.reads == "image" else query.text.strip()
        if not there:
            raise VragError(
                f"search by {service.name}: query {query.query_id!r} has no {service.reads},"
                " which alone is looked at. Leave it out, or use a search by another part."
            )


def check_corpus(service: SearchService, benchmark: Benchmark) -> None:
    """Raise `VragError` if a document of the service is missing or different in the corpus. The
    index then belongs to another split.
    """
    for doc_id, document in service.corpus.items():
        held = benchmark.corpus.get(doc_id)
        if held is not document and held != document:
            found = "is not in" if held is None else "is another one in"
            raise VragError(
                f"search by {service.name}: its document {doc_id!r} {found} {benchmark.name}."
                " Indexes belong to splits: search that of the questions."
            )


def with_query_modality(part: str, entry: Entry) -> Entry:
    """Returns the entry with the option `query` set to "image" or "text". The entry of a custom
    class, which decides itself what it encodes, is unchanged.

    Raises `VragError` where the entry sets another part, and for a run.
    """
    if custom_spec(entry):
        return entry
    if (run := find_run_file(entry)) is not None:
        raise VragError(
            f"retriever {display_path(run.path)!r} is a run, which ranks questions as they stand;"
            " here"
            " regions of pictures and new wordings are searched too. Name a retriever."
        )
    options = {"model": entry} if isinstance(entry, str) else dict(entry)
    if options.setdefault("query", part) != part:
        raise VragError(
            f"retriever {options.get('model')!r}: query is {options['query']!r}, but this search"
            f" is by the {part} alone. Remove the option."
        )
    return options


def _dense(
    encoder: Encoder,
    documents: Mapping[DocId, Document],
    pieces: Sequence[Document],
    cache_dir: Path | str,
    *,
    reads: str,
) -> IndexService:
    _check_documents(pieces)

    def make_index() -> Index:
        embeddings = embed_documents(encoder, pieces, cache_dir)
        return FlatRetriever(encoder, embeddings, lambda query_id: None).search

    stamps = ((piece.doc_id, encoder.modalities.stamp(piece)) for piece in pieces)
    return IndexService(
        name=encoder.name,
        fingerprint=_fingerprint([_RULE, encoder.fingerprint], stamps),
        reads=reads,
        corpus=documents,
        make_index=make_index,
        document_of=page_of_chunk if reads == "text" else str,
    )


def _check_documents(pieces: Sequence[Document]) -> None:
    if not pieces:
        raise VragError("there are no documents to search. Check the index's folder.")


def _fingerprint(parts: Sequence[object], stamps: Iterable[tuple[str, str]]) -> str:
    digest = hashlib.sha256(json.dumps(parts).encode())
    for stamp in stamps:
        digest.update(json.dumps(stamp).encode())
    return digest.hexdigest()


def _word_index(kind: type[Bm25Index] | type[TfidfIndex], chunks: Sequence[Document]) -> Index:
    names = [chunk.doc_id for chunk in chunks]
    index = kind(chunk.text or "" for chunk in chunks)
    return lambda queries, k: lexical_run(queries, names, index.scores, k)


WORDS, MOST = 512, 50
"""Words per chunk, and the maximum number of chunks per page, including the first."""
_MARK = "_chunk_"


def page_chunks(pages: Iterable[Document]) -> Iterator[Document]:
    """Yields every page's text chunks in order, with the id "<page>_chunk_<number>".

    Chunk 0 is the title (`page_name` in the metadata) and the snippet (the page's text); each later
    one is the next `WORDS` words of the full text (`page_result`), joined by single spaces. Raises
    `VragError` for a page with none of the three.
    """
    for page in pages:
        texts = [_opening(page), *_runs(page)]
        if not any(texts):
            raise VragError(
                f"page {page.doc_id!r} is empty: it has neither title, snippet nor full text, so"
                " that nothing can find it. Take it out of the index, or fetch it again."
            )
        for number, text in enumerate(texts):
            if text:
                yield Document(doc_id=f"{page.doc_id}{_MARK}{number}", text=text)


def page_of_chunk(chunk_id: str) -> DocId:
    """Returns the id of the page that a chunk was cut from."""
    return chunk_id.rpartition(_MARK)[0]


def _opening(page: Document) -> str:
    title = page.metadata.get("page_name") or ""
    return f"{title} {page.text or ''}".strip()


def _runs(page: Document) -> list[str]:
    words = (page.metadata.get("page_result") or "").split()[: WORDS * (MOST - 1)]
    return [" ".join(words[start : start + WORDS]) for start in range(0, len(words), WORDS)]


Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge, as fractions of the image's width and height."""
Regions = Callable[[Query], Sequence[Box]]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Crop:
    """A region of an image; implements `LazyImage`."""

    image: LazyImage
    box: Box

    @property
    def where(self) -> str:
        """The image's `where`, followed by the region."""
        return f"{self.image.where} {_box_text(self.box)}"

    @property
    def stamp(self) -> str:
        """The image's `stamp`, followed by the region."""
        return f"{self.image.stamp} {_box_text(self.box)}"

    def open(self) -> Image.Image:
        """Returns the region, with every pixel that it touches. Raises `VragError` for a region
        without area or wholly outside the image.
        """
        picture = self.image.open()
        width, height = picture.size
        edges = (
            max(0, math.floor(self.box[0] * width)),
            max(0, math.floor(self.box[1] * height)),
            min(width, math.ceil(self.box[2] * width)),
            min(height, math.ceil(self.box[3] * height)),
        )
        if edges[0] >= edges[2] or edges[1] >= edges[3]:
            raise VragError(
                f"{self.image.where}: the region {_box_text(self.box)} holds no pixel of it;"
                " expected"
                " left, upper, right, lower as fractions in [0, 1], left before right."
            )
        return picture.crop(edges)

    def data(self) -> bytes:
        """Returns the region as PNG."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()


@dataclass(frozen=True)
class RegionService(ServiceWrapper):
    """An image service that searches by each region of a query's image."""

    regions: Regions
    margin: float = 0.0
    """Margin on each side of a region, as a share of its own width and height."""

    @property
    def name(self) -> str:
        """The service's name with "-by-region", and the margin if there is one."""
        beyond = f"-and-{self.margin:g}" if self.margin else ""
        return f"{self.service.name}-by-region{beyond}"

    @property
    def fingerprint(self) -> str:
        """The service's fingerprint, which does not cover the regions of a query."""
        return self.service.fingerprint

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Implements `SearchService.search`; a query without regions is searched by its whole
        image. Raises `VragError` for a region that holds no pixel.
        """
        check_queries(self, queries, k)
        crops: list[Query] = []
        owners: dict[str, str] = {}
        for query in queries:
            for number, box in enumerate(self.regions(query) or [WHOLE]):
                crop = _cropped(query, number, _widened(box, self.margin))
                crops.append(crop)
                owners[crop.query_id] = query.query_id
        run = self.service.search(crops, k)
        run["query_id"] = run["query_id"].map(owners)
        best = run.groupby(["query_id", "doc_id"], sort=False, as_index=False)["score"].max()
        ranked = make_run(best)
        return ranked[ranked["rank"] <= k].reset_index(drop=True)


def with_regions(service: SearchService, regions: Regions, *, margin: float = 0.0) -> RegionService:
    """Returns a service that searches by the regions of each query's image. A `margin` widens them
    on each side by that share of their own width and height, within the image.

    Raises `VragError` for a service that reads texts, and for a margin below 0.
    """
    if not 0 <= margin < math.inf:
        raise VragError(
            f"with_regions: margin is {margin!r}; expected a share of a region's side, 0 or more."
        )
    if service.reads != "image":
        raise VragError(
            f"search by {service.name} reads the {service.reads} of a query, which has no"
            " regions. Use a search by image."
        )
    return RegionService(service, regions, margin)


def annotated_region(query: Query) -> list[Box]:
    """Returns the annotated region of a query's image, or an empty list if there is none. It is
    `region` in the metadata: left, upper, right, lower in pixels of an image of `image_size`, by
    default the image's own size.

    Raises `VragError` for an annotation that is not four numbers.
    """
    region = query.metadata.get("region")
    if not region:
        return []
    try:
        edges = [float(edge) for edge in region]
        size = query.metadata.get("image_size")
        if not size and query.image is not None:
            size = query.image.open().size
        width, height = (float(side) for side in size or ())
        return [(edges[0] / width, edges[1] / height, edges[2] / width, edges[3] / height)]
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        raise VragError(
            f"query {query.query_id!r}: its region is {region!r} in a picture of"
            f" {query.metadata.get('image_size')!r}; expected left, upper, right, lower, and width"
            " and height, in pixels."
        ) from error


def _cropped(query: Query, number: int, box: Box) -> Query:
    name = f"{query.query_id}#{number}"
    if box == WHOLE or query.image is None:
        return replace(query, query_id=name)
    return replace(query, query_id=name, image=Crop(query.image, box))


def _widened(box: Box, margin: float) -> Box:
    """Returns the box with its margin, within the image; without a margin, the box as it is."""
    if not margin:
        return box
    across, down = margin * (box[2] - box[0]), margin * (box[3] - box[1])
    left, upper = max(0.0, box[0] - across), max(0.0, box[1] - down)
    return left, upper, min(1.0, box[2] + across), min(1.0, box[3] + down)


def _box_text(box: Box) -> str:
    return ",".join(f"{edge:.6g}" for edge in box)


PART = 64
"""Queries per batch, which is the most that an interruption can lose."""

Hits = list[tuple[str, float]]  # doc_id, score


def cached_service(service: SearchService, folder: Path | str) -> SearchService:
    """Returns a service that caches search results in `folder`. Queries with the same text or image
    are searched once.

    For a service with regions, the results of the single crops are cached. Searching raises
    `VragError` where results cannot be read or stored.
    """
    if isinstance(service, RegionService):
        return replace(service, service=cached_service(service.service, folder))
    return CachedService(service, Path(folder).expanduser())


@dataclass(frozen=True)
class CachedService(ServiceWrapper):
    """A search service whose results are cached."""

    folder: Path

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Implements `SearchService.search`; cached results are read back bit for bit.

        A dry run searches nothing: if results are missing, it returns arbitrary documents, k per
        query.
        """
        check_queries(self, queries, k)
        keys = {query.query_id: self._key(query, k) for query in queries}
        asked = {keys[query.query_id]: query for query in queries}
        dry_run, place = current_dry_run(), self.folder / "replies.sqlite"
        if dry_run is not None and not place.exists():
            return self._any_order(queries, k, dry_run)
        with _open(place) as stored:
            known = dict(_known(stored, list(asked)))
            new = [key for key in asked if key not in known]
            if dry_run is not None and new:
                return self._any_order(queries, k, dry_run)
            for start in range(0, len(new), PART):
                replies = self._replies({key: asked[key] for key in new[start : start + PART]}, k)
                rows = [(key, json.dumps(hits)) for key, hits in replies.items()]
                with stored:
                    stored.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
                known |= replies
        if queries:
            read = len(asked) - len(new)
            logger.info(f"search by {self.name}: {read:,} replies from disk, {len(new):,} new")
        found: list[tuple[str, str, float]] = []
        for query_id, key in keys.items():
            found += [(query_id, doc_id, score) for doc_id, score in known[key]]
        return make_run(found)

    def _any_order(self, queries: Sequence[Query], k: int, dry_run: DryRun) -> pd.DataFrame:
        """Returns the arbitrary documents that replace results in a dry run."""
        dry_run.any_order.add(self.name)
        first = list(islice(self.corpus, k))
        rows: list[tuple[str, str, float]] = []
        for query in queries:
            rows += [(query.query_id, doc_id, 1.0) for doc_id in first]
        return make_run(rows)

    def _replies(self, asked: Mapping[str, Query], k: int) -> dict[str, Hits]:
        """Returns the service's hits for each query, under its key."""
        replies: dict[str, Hits] = {key: [] for key in asked}
        key_of = {query.query_id: key for key, query in asked.items()}
        run = self.service.search(list(asked.values()), k)
        for query_id, doc_id, _, score in run.itertuples(index=False):
            replies[key_of[query_id]].append((doc_id, score))
        return replies

    def _key(self, query: Query, k: int) -> str:
        told = query.text
        if self.reads == "image" and query.image is not None:
            told = pixel_hash(query.image.open())
        determining = json.dumps([self.fingerprint, k, self.reads, told])
        return hashlib.sha256(determining.encode()).hexdigest()


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=60)) as stored:
            stored.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, hits TEXT)")
            yield stored
    except (OSError, sqlite3.Error) as error:
        raise VragError(
            f"{path}: replies cannot be read or stored ({error}). Free space, or remove the file:"
            " what it held is then asked anew."
        ) from error


def _known(stored: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, Hits]]:
    """Yields (key, hits) of the cached results."""
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        places = ",".join("?" * len(part))
        rows = stored.execute(f"SELECT key, hits FROM replies WHERE key IN ({places})", part)
        for key, hits in rows:
            yield key, [(doc_id, score) for doc_id, score in json.loads(hits)]
