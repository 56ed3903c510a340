"""Dual encoders from transformers, such as CLIP, SigLIP, SigLIP 2 and BGE-VL-large."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from vrag_kit.checkpoints import LibraryObject, Options
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.base import InputModalities
from vrag_kit.retrieval.encoders.source import CheckpointSource, max_text_tokens
from vrag_kit.retrieval.encoders.towers import DualEncoderBase

_PADDED = ("siglip", "siglip2")
"""Families trained on texts padded to full length, with the padding attended to."""


class DualEncoder(DualEncoderBase):
    """Encodes texts by `get_text_features` and images by `get_image_features`, at unit length. The
    checkpoint's own image processor preprocesses images.
    """

    def __init__(
        self,
        model: LibraryObject,
        tokenizer: LibraryObject,
        images: LibraryObject,
        *,
        source: CheckpointSource,
        options: Options,
        query_prompt: str = "{text}",
    ) -> None:
        """`images` is the checkpoint's image processor; `query_prompt` has "{text}"
        where the question goes.
        """
        self._model = model
        self._tokenizer = tokenizer
        self._images = images
        self._padded = model.config.model_type in _PADDED
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.document_key = source.document_key(options)
        self.modalities: InputModalities = source.modalities
        self.prompts: Mapping[str, str] = {"query": query_prompt}

    @property
    def dim(self) -> int:
        """Number of components of an embedding."""
        with torch.inference_mode():
            return int(_features(self._model.get_text_features(**self._tokens("a"))).shape[-1])

    def pixels(self, picture: torch.Tensor) -> dict[str, torch.Tensor]:
        """Returns the image processor's inputs for the model, each with one row."""
        return dict(self._images(images=[picture], return_tensors="pt"))

    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Encodes texts one at a time; the result does not depend on other texts."""
        features = [self._model.get_text_features(**self._tokens(text)) for text in texts]
        return torch.cat([_features(each) for each in features])

    def image_features(self, pictures: list[Mapping[str, torch.Tensor]]) -> torch.Tensor:
        """Encodes all images in one batch; they must have the same shape."""
        batch = {}
        for name in pictures[0]:
            rows = torch.cat([inputs[name] for inputs in pictures])
            batch[name] = rows.to(self._model.device)
        batch["pixel_values"] = batch["pixel_values"].to(self._model.dtype)
        return _features(self._model.get_image_features(**batch))

    def _tokens(self, text: str) -> dict[str, torch.Tensor]:
        tokens = self._tokenizer(
            [text],
            truncation=True,
            max_length=max_text_tokens(self._tokenizer, self._model.config),
            padding="max_length" if self._padded else False,
            padding_side="right",
            return_tensors="pt",
        ).to(self._model.device)
        return {"input_ids": tokens["input_ids"]} if self._padded else dict(tokens)


def load_dual_encoder(source: CheckpointSource, *, query_prompt: str = "{text}") -> DualEncoder:
    """Load a model with `get_text_features` and `get_image_features`, its tokenizer and its image
    processor. Raises `VragError` as `CheckpointSource.read` does.
    """
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    if source.modalities.query == "image" and query_prompt != "{text}":
        raise VragError(
            f"retriever {source.spec!r}: query_prompt is {query_prompt!r}, but of a question only"
            " the image is encoded. Remove it, or set `query` to text or both."
        )
    model = source.read(AutoModel)
    options = {"family": "dual", "dtype": str(model.dtype), "query_prompt": query_prompt}
    return DualEncoder(
        model,
        source.read_part(AutoTokenizer),
        source.read_part(AutoImageProcessor),
        source=source,
        options=options,
        query_prompt=query_prompt,
    )


def _features(output: LibraryObject) -> torch.Tensor:
    """Returns the projected features. transformers 5 returns an object; code that comes with a
    checkpoint often returns the bare tensor.
    """
    return output if isinstance(output, torch.Tensor) else output.pooler_output
