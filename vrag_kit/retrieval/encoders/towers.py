"""Base class of dual encoders: a text tower and an image tower in one vector space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vrag_kit.retrieval.encoders.base import DocumentKey, EncoderInput, InputModalities, Prepared
from vrag_kit.retrieval.encoders.pixels import decode_rgb, normalize_rows
from vrag_kit.types import Document, Query


@dataclass(frozen=True, slots=True)
class TextAndImage:
    """A text and an image that are encoded as one vector."""

    text: str
    pixels: Prepared


class DualEncoderBase(ABC):
    """Encodes texts with one tower and images with the other, at unit length.

    A text and an image together are encoded as the sum of their two vectors, at unit length: a
    query then finds documents near either.
    """

    name: str
    fingerprint: str
    document_key: DocumentKey
    prompts: Mapping[str, str]
    modalities: InputModalities
    normalized = True

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of components of an embedding."""

    @abstractmethod
    def pixels(self, picture: torch.Tensor) -> Prepared:
        """Preprocesses an image for the tower: uint8, upright, shape (3, height, width)."""

    @abstractmethod
    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Returns text vectors, shape (n, d), not normalised; texts are truncated at the model's
        length.
        """

    @abstractmethod
    def image_features(self, pictures: list[Prepared]) -> torch.Tensor:
        """Returns image vectors, shape (n, d), not normalised."""

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d), of the parts in `modalities`. A question
        is encoded within its prompt.

        Queries are encoded one at a time, so the result does not depend on other queries.
        """
        rows = [self._row(query) for query in queries]
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    def _row(self, query: Query) -> np.ndarray:
        text, image = self.modalities.of_query(query, self.name)
        if text is not None:
            text = self.prompts.get("query", "{text}").replace("{text}", text)
        return self.encode_documents([self._prepared(EncoderInput(text, image))])

    def prepare(self, document: Document) -> Prepared:
        """Returns the text, the preprocessed image, or `TextAndImage`, as `modalities` selects.

        Raises `VragError` naming a document that lacks it, or has a damaged image.
        """
        return self._prepared(self.modalities.of_document(document, self.name))

    def _prepared(self, content: EncoderInput) -> Prepared:
        text, image = content
        if image is None:
            return text
        pixels = self.pixels(decode_rgb(image.data(), image.where))
        return pixels if text is None else TextAndImage(text, pixels)

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d); no prompt is added."""
        texts: dict[int, str] = {}
        pictures: dict[int, Prepared] = {}
        for place, each in enumerate(prepared):
            if isinstance(each, str):
                texts[place] = each
            elif isinstance(each, TextAndImage):
                texts[place] = each.text
                pictures[place] = each.pixels
            else:
                pictures[place] = each
        rows: dict[int, np.ndarray] = {}
        if texts:
            found = normalize_rows(self.text_features(list(texts.values())))
            rows = dict(zip(texts, found, strict=True))
        if pictures:
            found = normalize_rows(self.image_features(list(pictures.values())))
            for place, row in zip(pictures, found, strict=True):
                rows[place] = _together(rows[place], row) if place in rows else row
        return np.stack([rows[place] for place in range(len(prepared))])


def _together(text: np.ndarray, picture: np.ndarray) -> np.ndarray:
    """Returns the sum at unit length; zero, which validation rejects, where they are opposite."""
    total: np.ndarray = text + picture
    length = np.linalg.norm(total)
    return total / length if length else total
