"""Search services: image search by similarity, and page search by text.

Services over an index of the kit or a converted one have the same interface, and return a run over
their documents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.options import Entry
from vrag_kit.own_classes import custom_spec
from vrag_kit.retrieval.bm25 import Bm25Index
from vrag_kit.retrieval.corpora import note_planned_embedding
from vrag_kit.retrieval.dense import FlatRetriever
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.given_run import find_run_file
from vrag_kit.retrieval.known import open_encoder
from vrag_kit.retrieval.page_chunks import page_chunks, page_of_chunk
from vrag_kit.retrieval.runs import lexical_run, make_run
from vrag_kit.retrieval.tfidf import TfidfIndex
from vrag_kit.types import Benchmark, DocId, Document, Query
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
    encoder = open_encoder(told, cache_dir, device=device)
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
        encoder = open_encoder(told, cache_dir, device=device)
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

    stamps = ((piece.doc_id, encoder.shown.stamp(piece)) for piece in pieces)
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
