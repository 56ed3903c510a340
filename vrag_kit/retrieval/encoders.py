"""The interface of encoders, which map questions and documents to vectors in one space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from vrag_kit.retrieval.parts import DocumentKey, InputModalities
from vrag_kit.types import Document, Query

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
    def documents(self) -> DocumentKey:
        """Name and fingerprint of the document vectors alone."""

    @property
    def normalized(self) -> bool:
        """True when every row has unit length, so that a dot product is a cosine."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompt templates of a question ("query", with "{text}" for the question) and a document
        ("document"); empty without prompts.
        """

    @property
    def shown(self) -> InputModalities:
        """Which parts of questions and documents are encoded."""

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns query vectors, float32, shape (n, d); (0, d) for no queries.

        Raises `VragError` naming a query without an image that is to be encoded.
        """

    def prepare(self, document: Document) -> Prepared:
        """Preprocesses one document for `encode_documents`; runs in threads.

        Raises `VragError` naming the document.
        """

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Returns vectors, float32, shape (n, d), one row per prepared document."""
