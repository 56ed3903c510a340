"""Dual encoders of transformers: CLIP, SigLIP, SigLIP 2, BGE-VL-large, and any other
model with text and image features in one space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from vrag_kit.retrieval.encoders import rows_of, text_or_picture, unit_rows
from vrag_kit.retrieval.source import Source, longest_text
from vrag_kit.types import Evidence, Query

_PADDED = ("siglip", "siglip2")
"""Families trained on texts padded to full length, with the padding attended to."""


class DualEncoder:
    """Questions, and documents without a picture, through `get_text_features`; pictures
    through the checkpoint's own preprocessing and `get_image_features`; unit length.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        images: Any,
        *,
        name: str,
        fingerprint: str,
        query_prompt: str = "{text}",
    ) -> None:
        """`images` is the checkpoint's image processor; `query_prompt` has "{text}"
        where the question goes.
        """
        self._model, self._tokenizer, self._images = model, tokenizer, images
        self._padded = model.config.model_type in _PADDED
        self.name, self.fingerprint, self.normalized = name, fingerprint, True
        self.prompts: Mapping[str, str] = {"query": query_prompt}

    @torch.inference_mode()
    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); texts are cut at the model's context
        length. One at a time, so that company changes nothing.
        """
        texts = [self.prompts["query"].replace("{text}", query.text) for query in queries]
        return self._of_texts(texts) if texts else np.empty((0, self._dim()), np.float32)

    def prepare(self, document: Evidence) -> str | dict[str, torch.Tensor]:
        """The picture as the checkpoint's image processor hands it to the model, each
        tensor with one row; the text of a document without one.
        """
        content = text_or_picture(document, self.name)
        return (
            content
            if isinstance(content, str)
            else dict(self._images(images=[content], return_tensors="pt"))
        )

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[str | Mapping[str, torch.Tensor]]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); texts one at a time and without a
        prompt.
        """
        return rows_of(prepared, self._of_texts, self._of_pictures)

    def _of_texts(self, texts: list[str]) -> np.ndarray:
        return np.concatenate(
            [
                unit_rows(_features(self._model.get_text_features(**self._tokens(text))))
                for text in texts
            ]
        )

    def _of_pictures(self, pictures: list[Mapping[str, torch.Tensor]]) -> np.ndarray:
        batch = {
            name: torch.cat([inputs[name] for inputs in pictures]).to(self._model.device)
            for name in pictures[0]
        }
        batch["pixel_values"] = batch["pixel_values"].to(self._model.dtype)
        return unit_rows(_features(self._model.get_image_features(**batch)))

    def _tokens(self, text: str) -> dict[str, torch.Tensor]:
        tokens = self._tokenizer(
            [text],
            truncation=True,
            max_length=longest_text(self._tokenizer, self._model.config),
            padding="max_length" if self._padded else False,
            padding_side="right",
            return_tensors="pt",
        ).to(self._model.device)
        return {"input_ids": tokens["input_ids"]} if self._padded else dict(tokens)

    def _dim(self) -> int:
        return int(_features(self._model.get_text_features(**self._tokens("a"))).shape[-1])


def load_dual(source: Source, *, query_prompt: str = "{text}") -> DualEncoder:
    """Load a model with `get_text_features` and `get_image_features`, its tokenizer and
    its image processor; raises `VragError` as `Source.read` does.
    """
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    model = source.read(AutoModel)
    fingerprint = source.fingerprint(
        {"family": "dual", "dtype": str(model.dtype), "query_prompt": query_prompt}
    )
    return DualEncoder(
        model,
        source.read_part(AutoTokenizer),
        source.read_part(AutoImageProcessor),
        name=source.name,
        fingerprint=fingerprint,
        query_prompt=query_prompt,
    )


def _features(output: Any) -> torch.Tensor:
    """The projected features: transformers 5 returns an object, code that comes with a
    checkpoint often the bare tensor.
    """
    return output if isinstance(output, torch.Tensor) else output.pooler_output
