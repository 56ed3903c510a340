"""Search services: pictures find entries by their likeness, questions find pages by text.

Whatever lies behind, an index of ours or a converted one, a service is asked in one way
and answers with a run over its documents.
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
from vrag_kit.own_classes import own_spec
from vrag_kit.retrieval.bm25 import Bm25Index
from vrag_kit.retrieval.corpora import note_corpus
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.given_run import run_file
from vrag_kit.retrieval.known import open_encoder
from vrag_kit.retrieval.page_chunks import page_chunks, page_of
from vrag_kit.retrieval.run import make_run, matched_run
from vrag_kit.retrieval.search import FlatRetriever
from vrag_kit.retrieval.tfidf import WordIndex
from vrag_kit.types import Benchmark, DocId, Evidence, Query
from vrag_kit.workspace import shown


class SearchService(Protocol):
    """Answers what is asked with documents of its own."""

    @property
    def name(self) -> str:
        """Short name for tables and folders."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that determines what is found: documents, and how they are
        compared.
        """

    @property
    def reads(self) -> str:
        """The one part of a query that it looks at: "image" or "text"."""

    @property
    def corpus(self) -> Mapping[DocId, Evidence]:
        """Everything that it can find."""

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """The best documents of each query as a run (see `retrieval.run`), at most k a
        query; ties by doc_id descending, also at the cut.

        Empty for no query. Raises `VragError` when k is below 1, for two queries of one
        id, and for a query without the part that is looked at.
        """


@dataclass(frozen=True)
class AroundService:
    """A service around another, whose name, fingerprint and documents it has unless it
    says otherwise.
    """

    service: SearchService

    @property
    def name(self) -> str:
        """As the service's."""
        return self.service.name

    @property
    def fingerprint(self) -> str:
        """As the service's."""
        return self.service.fingerprint

    @property
    def reads(self) -> str:
        """As the service's."""
        return self.service.reads

    @property
    def corpus(self) -> Mapping[DocId, Evidence]:
        """As the service's."""
        return self.service.corpus


Index = Callable[[Sequence[Query], int], pd.DataFrame]
"""What ranks the pieces of documents for queries: as `FlatRetriever.search`."""


@dataclass(frozen=True, kw_only=True, repr=False)
class IndexService:
    """A service over an index, which is made when it is first asked."""

    name: str
    fingerprint: str
    reads: str
    corpus: Mapping[DocId, Evidence]
    make_index: Callable[[], Index]
    document_of: Callable[[str], DocId] = str
    """The document that a piece in the index belongs to. Pieces are cut to k first and
    then made unique by document, so that fewer than k documents may come.
    """

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """As `SearchService.search` says."""
        check_asked(self, queries, k)
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
    documents: Mapping[DocId, Evidence], entry: Entry, cache_dir: Path | str, *, device: str = "cpu"
) -> IndexService:
    """A search by the picture of a query, and by nothing else, among the pictures of
    `documents`; each picture is encoded once, and kept in `cache_dir`.

    `entry` is a retriever (`load_encoder`), whose query side is told to encode the
    picture alone, as it encodes the documents. The score is the inner product. Raises
    `VragError` as `load_encoder` does, and for no documents.
    """
    told = asked_by("image", entry)
    note_corpus(told, documents.values(), cache_dir, device=device)
    encoder = open_encoder(told, cache_dir, device=device)
    return _dense(encoder, documents, list(documents.values()), cache_dir, reads="image")


def text_service(
    documents: Mapping[DocId, Evidence], entry: Entry, cache_dir: Path | str, *, device: str = "cpu"
) -> IndexService:
    """A search by the text of a query, and by nothing else, among the chunks of pages
    (`page_chunks`); a page is found by its best chunk, and has that chunk's score.

    `entry` is "bm25" (`Bm25Index`), "words" (cosine of tf-idf weights, `WordIndex`), or
    a retriever (`load_encoder`), whose vectors are kept in `cache_dir`. Chunks that
    share no word with the question are not found by the first two. Raises `VragError` as
    `load_encoder` does, for no documents, and for an empty page.
    """
    chunks = list(page_chunks(documents.values()))
    if not isinstance(entry, str) or entry not in WORD_INDEXES:
        told = asked_by("text", entry)
        note_corpus(told, chunks, cache_dir, device=device)
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
        document_of=page_of,
    )


WORD_INDEXES: dict[str, type[Bm25Index] | type[WordIndex]] = {"bm25": Bm25Index, "words": WordIndex}
"""Searches of texts that need no model."""
_RULE = 1
"""Counts the ways in which a service's chunks or scores have changed."""


def check_asked(service: SearchService, queries: Sequence[Query], k: int) -> None:
    """Raise `VragError` for what no service answers, naming the query."""
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
    """Raise `VragError` for a service that finds what the benchmark's corpus does not
    hold, or holds otherwise: the index of another split.
    """
    for doc_id, document in service.corpus.items():
        held = benchmark.corpus.get(doc_id)
        if held is not document and held != document:
            found = "is not in" if held is None else "is another one in"
            raise VragError(
                f"search by {service.name}: its document {doc_id!r} {found} {benchmark.name}."
                " Indexes belong to splits: search that of the questions."
            )


def asked_by(part: str, entry: Entry) -> Entry:
    """The entry with its query side told to encode "image" or "text" alone; that of a
    class of one's own as it is, which says itself what it encodes.

    Raises `VragError` where it says otherwise, and for a run.
    """
    if own_spec(entry):
        return entry
    if (run := run_file(entry)) is not None:
        raise VragError(
            f"retriever {shown(run.path)!r} is a run, which ranks questions as they stand; here"
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
    documents: Mapping[DocId, Evidence],
    pieces: Sequence[Evidence],
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
        document_of=page_of if reads == "text" else str,
    )


def _check_documents(pieces: Sequence[Evidence]) -> None:
    if not pieces:
        raise VragError("there are no documents to search. Check the index's folder.")


def _fingerprint(told: Sequence[object], stamps: Iterable[tuple[str, str]]) -> str:
    digest = hashlib.sha256(json.dumps(told).encode())
    for stamp in stamps:
        digest.update(json.dumps(stamp).encode())
    return digest.hexdigest()


def _word_index(kind: type[Bm25Index] | type[WordIndex], chunks: Sequence[Evidence]) -> Index:
    names = [chunk.doc_id for chunk in chunks]
    index = kind(chunk.text or "" for chunk in chunks)
    return lambda queries, k: matched_run(queries, names, index.scores, k)
