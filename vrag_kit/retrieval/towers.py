"""Dual encoders of every make: a tower for texts, one for pictures, one space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vrag_kit.retrieval.encoders import Prepared
from vrag_kit.retrieval.parts import Content, DocumentSide, Shown
from vrag_kit.retrieval.pictures import decode_rgb, unit_rows
from vrag_kit.types import Evidence, Query


@dataclass(frozen=True, slots=True)
class Both:
    """A text and a picture that become one vector."""

    text: str
    pixels: Prepared


class TwoTowers(ABC):
    """Texts through one tower, pictures through the other, unit length.

    A text and a picture together are the sum of their two vectors, at unit length: a
    query then finds what is near to either.
    """

    name: str
    fingerprint: str
    documents: DocumentSide
    prompts: Mapping[str, str]
    shown: Shown
    normalized = True

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of components of an embedding."""

    @abstractmethod
    def pixels(self, picture: torch.Tensor) -> Prepared:
        """What the tower takes of a picture: uint8, upright, shape (3, height, width)."""

    @abstractmethod
    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Rows of shape (n, d), as long as the model makes them; texts are cut at its
        length.
        """

    @abstractmethod
    def picture_features(self, pictures: list[Prepared]) -> torch.Tensor:
        """Rows of shape (n, d), as long as the model makes them."""

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d), of what `shown` says; the question
        within its prompt.

        One at a time, so that company changes nothing.
        """
        rows = [self._row(query) for query in queries]
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    def _row(self, query: Query) -> np.ndarray:
        text, image = self.shown.of_query(query, self.name)
        if text is not None:
            text = self.prompts.get("query", "{text}").replace("{text}", text)
        return self.encode_documents([self._prepared(Content(text, image))])

    def prepare(self, document: Evidence) -> Prepared:
        """The text, the picture as its tower takes it, or `Both`, as `shown` says.

        Raises `VragError` naming a document without it, or with a damaged picture.
        """
        return self._prepared(self.shown.of_document(document, self.name))

    def _prepared(self, content: Content) -> Prepared:
        text, image = content
        if image is None:
            return text
        pixels = self.pixels(decode_rgb(image.data(), image.where))
        return pixels if text is None else Both(text, pixels)

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); texts stand without a prompt."""
        texts: dict[int, str] = {}
        pictures: dict[int, Prepared] = {}
        for place, each in enumerate(prepared):
            if isinstance(each, str):
                texts[place] = each
            elif isinstance(each, Both):
                texts[place] = each.text
                pictures[place] = each.pixels
            else:
                pictures[place] = each
        rows: dict[int, np.ndarray] = {}
        if texts:
            found = unit_rows(self.text_features(list(texts.values())))
            rows = dict(zip(texts, found, strict=True))
        if pictures:
            found = unit_rows(self.picture_features(list(pictures.values())))
            for place, row in zip(pictures, found, strict=True):
                rows[place] = _together(rows[place], row) if place in rows else row
        return np.stack([rows[place] for place in range(len(prepared))])


def _together(text: np.ndarray, picture: np.ndarray) -> np.ndarray:
    """The sum at unit length; zero, which the store refuses, where they are opposite."""
    total: np.ndarray = text + picture
    length = np.linalg.norm(total)
    return total / length if length else total
