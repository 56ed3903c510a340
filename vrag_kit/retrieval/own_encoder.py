"""An encoder of one's own, with all that the kit wants of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from vrag_kit.errors import CertainError, VragError
from vrag_kit.options import Entry
from vrag_kit.own_classes import Own, open_own, own_code
from vrag_kit.retrieval.directions import check_vectors
from vrag_kit.retrieval.encoders import Prepared
from vrag_kit.retrieval.parts import Content, DocumentSide, Shown, content_hash
from vrag_kit.types import Evidence, Query

_NEEDED = ("encode_queries", "encode_documents")


class EncoderClass(Protocol):
    """What a class must have whose objects are retrievers; the nearest is what has the
    largest dot product.

    Optional are `name`, `fingerprint`, `normalized` (true: every vector has unit
    length, which is then checked; false unless it says so), and `prepare(document)`,
    which runs in threads ahead of `encode_documents`, and whose results that is then
    given in the place of the documents.
    """

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """One row a question, shape (n, d)."""

    def encode_documents(self, documents: Sequence[Evidence]) -> np.ndarray:
        """One row a document, shape (n, d)."""


class OwnEncoder:
    """Fits an object of somebody's own class to `Encoder`."""

    normalized: bool
    prompts: Mapping[str, str]

    def __init__(self, own: Own) -> None:
        """`own` has the methods of `EncoderClass`."""
        self._made = own.made
        self.name = own.name
        self.fingerprint = own.fingerprint
        self.normalized = bool(getattr(own.made, "normalized", False))
        self.prompts = dict(getattr(own.made, "prompts", {}))
        self.shown: Shown = _Whole(query="both", document="both", usual="both", usual_query="both")
        self.documents = DocumentSide(self.name, self.fingerprint)

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); raises `VragError` for another number of rows, and where
        its class fails.
        """
        with own_code(f"retriever {self.name!r}: encode_queries", self._made):
            rows = _items(self._made.encode_queries(queries))
        return self._rows(rows, len(queries), "queries")

    def prepare(self, document: Evidence) -> Prepared:
        """What its class makes of a document, or the document; raises `VragError` where
        its class fails.
        """
        prepare = getattr(self._made, "prepare", None)
        if prepare is None:
            return document
        owner = f"retriever {self.name!r}, document {document.doc_id!r}: prepare"
        with own_code(owner, self._made):
            return prepare(document)

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """float32, shape (n, d), of what `prepare` gave; raises `VragError` for another
        number of rows, and where its class fails.
        """
        with own_code(f"retriever {self.name!r}: encode_documents", self._made):
            rows = _items(self._made.encode_documents(prepared))
        return self._rows(rows, len(prepared), "documents")

    def check_one(self, query: Query, document: Evidence) -> None:
        """Raise `CertainError` for vectors of one question and one document that no search
        takes. What its class raises is left to the run, whose device may be another.
        """
        try:
            asked = _items(self._made.encode_queries([query]))
            ready = getattr(self._made, "prepare", lambda given: given)(document)
            shown = _items(self._made.encode_documents([ready]))
        except Exception:  # whatever code that is not ours does
            return
        try:
            questions = self._rows(asked, 1, "queries")
            documents = self._rows(shown, 1, "documents")
            check_vectors(questions, [query.query_id], self)
            check_vectors(documents, [document.doc_id], self)
        except VragError as error:
            raise CertainError(str(error)) from error
        if questions.shape != documents.shape:
            raise CertainError(
                f"retriever {self.name!r}: its vectors of questions have {questions.shape[1]}"
                f" components, those of documents {documents.shape[1]}; expected as many."
            )

    def _rows(self, vectors: object, count: int, what: str) -> np.ndarray:
        try:
            rows = np.asarray(vectors, dtype=np.float32)
        except (TypeError, ValueError, RuntimeError) as error:  # the last of torch's
            raise VragError(
                f"retriever {self.name}: encode_{what} returned {type(vectors).__name__}, which is"
                f" no array of numbers ({error}); expected shape ({count}, d)."
            ) from error
        if rows.ndim != 2 or len(rows) != count:
            raise VragError(
                f"retriever {self.name}: encode_{what} returned shape {rows.shape} for"
                f" {count} {what}; expected ({count}, d), a row for each."
            )
        return rows


def _items(rows: object) -> object:
    """The items of an iterator; anything else as it is."""
    return list(rows) if isinstance(rows, Iterator) else rows


class _Whole(Shown):
    """Everything that a question or document has: it is not known what of it counts."""

    def of_query(self, query: Query, encoder: str) -> Content:
        """Its text, and its picture where it has one."""
        return Content(query.text, query.image)

    def content(self, document: Evidence, encoder: str) -> str:
        """Of its text, its picture and its name."""
        return content_hash(Content(document.text, document.image), document.doc_id)


def own_encoder(entry: Entry | EncoderClass, *, device: str = "cpu") -> OwnEncoder | None:
    """The encoder of an entry that names one's own class, or of an object; None for a
    checkpoint's. A class with a parameter `device` is given that. Raises as `open_own`.
    """
    own = open_own(entry, "retriever", _NEEDED, offered={"device": device})
    return None if own is None else OwnEncoder(own.to_keep("retriever"))
