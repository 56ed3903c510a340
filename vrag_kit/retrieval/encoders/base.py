"""The interface of encoders, which map questions and documents to vectors in one space.

A class of your own is a `CustomEncoder`; a new family of checkpoints is an `EncoderModel` with its
`load`, a row in `loading.FAMILIES` with its options, and a branch in `loading._family`. Both become
an `Encoder`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.types import Document, LazyImage, Query

Prepared = Any
"""A preprocessed document; its type depends on the encoder."""


class Encoder(Protocol):
    """Encodes queries and documents, which may differ in prompt, weights and modality.

    Preparing (decoding, resizing) is separate from encoding, and can run ahead in threads.
    """

    @property
    def name(self) -> str:
        """Short name for tables, figures and folders."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines an embedding: weights, prompts, preprocessing, number
        type and encoded parts.
        """

    @property
    def document_key(self) -> DocumentKey:
        """Name and fingerprint of the document vectors alone."""

    @property
    def normalized(self) -> bool:
        """True when every row has unit length, so that a dot product is a cosine."""

    @property
    def modalities(self) -> InputModalities:
        """Which parts of questions and documents are encoded."""

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns query vectors, float32, shape (n, d), of at least one query.

        Raises `VragError` naming a query without an image that is to be encoded.
        """

    def prepare(self, document: Document) -> Prepared:
        """Preprocesses one document for `encode_documents`; runs in threads.

        Raises `VragError` naming the document.
        """

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Returns vectors, float32, shape (n, d), one row per prepared document."""


class EncoderModel(Protocol):
    """The weights of an encoder. Each family's module has `load(checkpoint)`, which returns one."""

    def prepare(self, content: EncoderInput, side: str) -> Prepared:
        """Preprocesses an input of the `side` "query" or "document"; runs in threads."""

    def embed(self, prepared: Sequence[Prepared], side: str) -> np.ndarray:
        """Returns vectors, float32, shape (n, d), for at least one prepared input."""


class DocumentKey(NamedTuple):
    """Identifies document vectors by name and fingerprint. Encoders that differ only on the query
    side have the same key, and share the vectors.
    """

    name: str
    """Prefix of the name of their folder."""
    fingerprint: str
    """Hash of everything that determines the vectors."""


class EncoderInput(NamedTuple):
    """A text, an image, or both."""

    text: str | None
    image: LazyImage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputModalities:
    """Which parts of questions and documents are encoded."""

    query: str = "text"
    """"text", "image" or "both"."""
    document: str = "auto"
    """The same, or "auto", the image, or the text of a document without one."""

    default_query: str = "text"
    """The default of `query` for this kind of encoder."""
    default_document: str = "auto"
    """The default of `document` for this kind of encoder."""

    def overrides(self) -> dict[str, str]:
        """Returns the parts that are not the defaults; they enter the fingerprint."""
        parts = {"query": self.query, "document": self.document}
        defaults = {"query": self.default_query, "document": self.default_document}
        return {side: part for side, part in parts.items() if part != defaults[side]}

    @property
    def suffix(self) -> str:
        """Suffix of the encoder's name with the parts that are not the defaults: "-by-image",
        "-of-text".
        """
        words = {"query": "by", "document": "of"}
        return "".join(f"-{words[side]}-{part}" for side, part in self.overrides().items())

    def of_query(self, query: Query, encoder: str) -> EncoderInput:
        """Returns what `encoder` encodes of a question. Raises `VragError` naming a question
        without an image that it needs.
        """
        if self.query == "text":
            return EncoderInput(query.text, None)
        if query.image is None:
            raise VragError(
                f"query {query.query_id!r} has no image, but {encoder}'s `query` is {self.query!r}."
            )
        return EncoderInput(query.text if self.query == "both" else None, query.image)

    def of_document(self, document: Document, encoder: str) -> EncoderInput:
        """Returns what `encoder` encodes of a document. Raises `VragError` naming a document that
        lacks it.
        """
        first = "text" if document.image is None else "image"
        wanted = {"both": ["image", "text"], "auto": [first]}.get(self.document, [self.document])
        has = {"image": document.image is not None, "text": bool((document.text or "").strip())}
        if missing := [part for part in wanted if not has[part]]:
            lacks = "image and no text" if self.document == "auto" else missing[0]
            where = f"{encoder} encodes: its option `document` is {self.document!r}"
            raise VragError(f"document {document.doc_id!r} has no {lacks}, which {where}.")
        return EncoderInput(
            document.text if "text" in wanted else None,
            document.image if "image" in wanted else None,
        )

    def stamp(self, document: Document) -> str:
        """Returns a stamp that changes whenever the encoded parts may have changed."""
        if document.image is None or self.document == "text":
            return _hash(document.text)
        stamp = document.image.stamp
        return f"{stamp} {_hash(document.text)}" if self.document == "both" else stamp


def _hash(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()


def check_dimensions(encoder: Encoder, queries: int, documents: int) -> None:
    """Raise `VragError` unless vectors of queries and of documents have as many components."""
    if queries != documents:
        raise VragError(
            f"retriever {encoder.name!r}: its vectors of questions have {queries} components, those"
            f" of documents {documents}; expected as many, from one encoder."
        )


def validate_embeddings(vectors: np.ndarray, names: Sequence[str], encoder: Encoder) -> None:
    """Raise `VragError` naming the first document or query whose vector is NaN,
    infinite, zero, or not of unit length where it should be.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    wrong = ~np.isfinite(lengths) | (lengths == 0)
    expected = "a finite number above 0"
    if encoder.normalized:
        wrong |= np.abs(lengths - 1) > 1e-3
        expected = "1"
    if wrong.any():
        row = int(np.argmax(wrong))
        raise VragError(
            f"{encoder.name}: the embedding of {names[row]!r} has length {lengths[row]:.4g},"
            f" expected {expected} ({wrong.sum():,} such rows). Half precision can overflow: try"
            " float32."
        )
