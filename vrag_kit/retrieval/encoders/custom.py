"""Adapts a custom encoder class to the `Encoder` interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from vrag_kit.config import CustomObject, Entry, catch_custom_errors, load_custom
from vrag_kit.errors import SetupError, VragError
from vrag_kit.retrieval.encoders.base import (
    DocumentKey,
    EncoderInput,
    InputModalities,
    Prepared,
    check_dimensions,
    validate_embeddings,
)
from vrag_kit.types import Document, Query


class CustomEncoder(Protocol):
    """The interface of a custom retriever class; documents are ranked by dot product.

    Optional are `name`, `fingerprint`, `normalized` (true: every vector has unit length, which is
    then checked; default false), and `prepare(document)`. The latter runs in threads, and its
    results replace the documents in `encode_documents`.
    """

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns one row per question, shape (n, d)."""

    def encode_documents(self, documents: Sequence[Document]) -> np.ndarray:
        """Returns one row per document, shape (n, d)."""


class CustomEncoderAdapter:
    """Adapts an object of a custom class to `Encoder`."""

    def __init__(self, own: CustomObject) -> None:
        """`own` has the methods of `CustomEncoder`."""
        self._made = own.made
        self.name = own.name
        self.fingerprint = own.fingerprint
        self.normalized = bool(getattr(own.made, "normalized", False))
        self.modalities: InputModalities = _Whole(
            query="both", document="both", default_query="both", default_document="both"
        )
        self.document_key = DocumentKey(self.name, self.fingerprint)

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns query vectors, float32, shape (n, d). Raises `VragError` for another number of
        rows, and where the custom class fails.
        """
        return self._encode("queries", queries)

    def prepare(self, document: Document) -> Prepared:
        """Returns the result of the class's `prepare`, or the document if it has none. Raises
        `VragError` where the class fails.
        """
        with catch_custom_errors(
            f"retriever {self.name!r}, document {document.doc_id!r}: prepare", self._made
        ):
            return getattr(self._made, "prepare", lambda given: given)(document)

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Returns vectors of prepared documents, float32, shape (n, d). Raises `VragError` for
        another number of rows, and where the custom class fails.
        """
        return self._encode("documents", prepared)

    def check_one(self, query: Query, document: Document) -> None:
        """Raise `SetupError` if the vectors of one question and one document cannot be searched.
        Exceptions of the custom class are left to the run, whose device may differ.
        """
        try:
            questions = self.encode_queries([query])
            documents = self.encode_documents([self.prepare(document)])
            validate_embeddings(questions, [query.query_id], self)
            validate_embeddings(documents, [document.doc_id], self)
            check_dimensions(self, questions.shape[1], documents.shape[1])
        except VragError as error:
            if error.__cause__ is None:  # not an exception of the custom class
                raise SetupError(str(error)) from error

    def _encode(self, side: str, inputs: Sequence[Any]) -> np.ndarray:
        encode = getattr(self._made, f"encode_{side}")
        with catch_custom_errors(f"retriever {self.name!r}: encode_{side}", self._made):
            vectors = encode(inputs)
        expected = f"expected numbers of shape ({len(inputs)}, d), a row for each."
        where = f"retriever {self.name}: encode_{side} returned"
        try:
            rows = np.asarray(vectors, dtype=np.float32)
        except (TypeError, ValueError, RuntimeError) as error:  # the last of torch's
            raise VragError(f"{where} {type(vectors).__name__} ({error}); {expected}") from None
        if rows.ndim != 2 or len(rows) != len(inputs):
            raise VragError(f"{where} shape {rows.shape} for {len(inputs)} {side}; {expected}")
        return rows


class _Whole(InputModalities):
    """All parts of a question or document: those that a custom class uses are unknown."""

    def of_query(self, query: Query, encoder: str) -> EncoderInput:
        """Returns the question's text, and its image if it has one."""
        return EncoderInput(query.text, query.image)


def load_custom_encoder(
    entry: Entry | CustomEncoder, *, device: str = "cpu"
) -> CustomEncoderAdapter | None:
    """Returns the encoder of a custom class or object; None for the entry of a checkpoint. A class
    with a parameter `device` receives it. Raises as `load_custom` does.
    """
    needed = ("encode_queries", "encode_documents")
    own = load_custom(entry, "retriever", needed, offered={"device": device})
    return None if own is None else CustomEncoderAdapter(own.require_fingerprint("retriever"))
