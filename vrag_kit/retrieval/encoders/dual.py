"""Dual encoders: a text tower and an image tower in one vector space.

`TransformersDual` is those of transformers, such as CLIP, SigLIP, SigLIP 2 and BGE-VL-large.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from vrag_kit.checkpoints import LibraryObject
from vrag_kit.retrieval.encoders.base import EncoderInput, Prepared
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint, max_text_tokens
from vrag_kit.retrieval.encoders.pixels import decode_rgb, normalize_rows

_PADDED = ("siglip", "siglip2")
"""Families trained on texts padded to full length, with the padding attended to."""


class TextAndImage(NamedTuple):
    """A text, and preprocessed pixels; one of them may be None."""

    text: str | None
    pixels: Prepared


class DualModel(ABC):
    """Encodes texts with one tower and images with the other, at unit length.

    A text and an image together are encoded as the sum of their two vectors, at unit length: a
    query then finds documents near either.
    """

    prompts: Mapping[str, str] = {}

    @abstractmethod
    def pixels(self, image: torch.Tensor) -> Prepared:
        """Preprocesses an image for the tower: uint8, upright, shape (3, height, width)."""

    @abstractmethod
    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Returns text vectors, shape (n, d), not normalized; texts are truncated at the model's
        length.
        """

    @abstractmethod
    def image_features(self, images: list[Prepared]) -> torch.Tensor:
        """Returns image vectors, shape (n, d), not normalized."""

    def prepare(self, content: EncoderInput, side: str) -> TextAndImage:
        """Returns the text within the prompt of its side, and the preprocessed image.

        Raises `VragError` for a damaged image.
        """
        text, image = content
        if text is not None:
            text = self.prompts.get(side, "{text}").replace("{text}", text)
        pixels = None if image is None else self.pixels(decode_rgb(image.data(), image.where))
        return TextAndImage(text, pixels)

    @torch.inference_mode()
    def embed(self, prepared: Sequence[TextAndImage], side: str) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d)."""
        total: dict[int, np.ndarray] = {}
        texts = {i: each.text for i, each in enumerate(prepared) if each.text is not None}
        images = {i: each.pixels for i, each in enumerate(prepared) if each.pixels is not None}
        for inputs, features in ((texts, self.text_features), (images, self.image_features)):
            if inputs:
                rows = normalize_rows(features(list(inputs.values())))
                for place, row in zip(inputs, rows, strict=True):
                    total[place] = _unit(total[place] + row) if place in total else row
        return np.stack([total[place] for place in range(len(prepared))])


def _unit(row: np.ndarray) -> np.ndarray:
    """Returns a vector at unit length; zero, which validation rejects, stays zero."""
    length = np.linalg.norm(row)
    return row / length if length else row


class TransformersDual(DualModel):
    """Encodes texts by `get_text_features` and images by `get_image_features`. The checkpoint's own
    image processor preprocesses images.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Loads a model with `get_text_features` and `get_image_features`, its tokenizer and its
        image processor. Raises `VragError` as `Checkpoint.read_model`.
        """
        from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

        (folder,) = checkpoint.folders
        self._model = checkpoint.read_model(AutoModel, folder)
        self._tokenizer = checkpoint.read_part(AutoTokenizer, folder)
        self._processor = checkpoint.read_part(AutoImageProcessor, folder)
        self._padded = self._model.config.model_type in _PADDED
        self.prompts = checkpoint.prompts

    def pixels(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        """Returns the image processor's inputs for the model, each with one row."""
        return dict(self._processor(images=[image], return_tensors="pt"))

    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Encodes texts one at a time; the result does not depend on other texts."""
        return torch.cat([self._text_features(text) for text in texts])

    def _text_features(self, text: str) -> torch.Tensor:
        tokens = self._tokenizer(
            [text],
            truncation=True,
            max_length=max_text_tokens(self._tokenizer, self._model.config),
            padding="max_length" if self._padded else False,
            padding_side="right",
            return_tensors="pt",
        ).to(self._model.device)
        inputs = {"input_ids": tokens["input_ids"]} if self._padded else tokens
        return _features(self._model.get_text_features(**inputs))

    def image_features(self, images: list[Mapping[str, torch.Tensor]]) -> torch.Tensor:
        """Encodes all images in one batch; they must have the same shape."""
        batch = {
            name: torch.cat([inputs[name] for inputs in images]).to(self._model.device)
            for name in images[0]
        }
        batch["pixel_values"] = batch["pixel_values"].to(self._model.dtype)
        return _features(self._model.get_image_features(**batch))


def _features(output: LibraryObject) -> torch.Tensor:
    """Returns the projected features. transformers 5 returns an object; code that comes with a
    checkpoint often returns the bare tensor.
    """
    return output if isinstance(output, torch.Tensor) else output.pooler_output


load = TransformersDual
