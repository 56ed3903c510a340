"""Encoders place questions and documents in one space, where near is relevant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from vrag_kit.retrieval.parts import DocumentSide, Shown
from vrag_kit.types import Evidence, Query

Prepared = Any
"""What an encoder makes of a document before it encodes: only it knows."""


class Encoder(Protocol):
    """Two verbs, because real encoders differ between the sides in prompt, weights and
    modality.

    Preparing (decoding, resizing) is apart from encoding, so that it can run ahead in
    threads.
    """

    @property
    def name(self) -> str:
        """Short name for tables, figures and folders."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that determines an embedding: weights, prompts, preprocessing,
        number type, and what is shown.
        """

    @property
    def documents(self) -> DocumentSide:
        """The same of documents alone."""

    @property
    def normalized(self) -> bool:
        """True when every row has unit length, so that a dot product is a cosine."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """What is said around a question ("query", with "{text}" for the question) and
        a document ("document"); empty where nothing is.
        """

    @property
    def shown(self) -> Shown:
        """Which parts of questions and documents are encoded."""

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); (0, d) for no queries.

        Raises `VragError` naming a query without a picture that is to be encoded.
        """

    def prepare(self, document: Evidence) -> Prepared:
        """Whatever `encode_documents` needs of one document; runs in threads.

        Raises `VragError` naming the document.
        """

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """float32, shape (n, d), one row for each prepared document."""
