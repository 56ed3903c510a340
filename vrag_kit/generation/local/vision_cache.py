"""Cache of vision features: a recurring image is decoded, preprocessed and encoded once.

transformers lets a model take ready features (`mm_encoder_outputs`) in place of pixels. For each
image, the cache therefore keeps the text that stands for it in the prompt, its small tensors (such
as Qwen's grid), and its features.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby

import torch
from PIL import Image
from transformers.modeling_outputs import BaseModelOutputWithPooling

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.checkpoints import LibraryObject, Options
from vrag_kit.generation.local.processors import Inputs, PromptImage, PromptProcessor

CACHE_BYTES = 1 << 30
"""Maximum bytes of cached features; the least recently used are dropped first."""
_PREPROCESSED = 32
"""Images whose pixels are in memory at once."""

Features = torch.Tensor | list[torch.Tensor]
"""Rows of a tensor, or a list of tensors, depending on the family."""
Tensors = dict[str, torch.Tensor]
_Preprocessed = tuple[PromptImage, Tensors, str]
"""An image, its tensors from the processor, and the tokens that stand for it."""


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """The vision features of one image."""

    pixel_hash: str
    placeholder: str  # the tokens that stand for it
    tensors: Tensors  # what else its prompt needs, such as image_grid_thw
    features: Features

    @property
    def nbytes(self) -> int:
        """Bytes of the features."""
        return sum(part.nbytes for part in self.features)


class VisionCache:
    """The vision encoder of a model, with a cache of its features."""

    def __init__(self, model: LibraryObject, processor: PromptProcessor) -> None:
        self._model = model
        self._processor = processor.processor
        self._budget = processor.budget
        self._parameters = frozenset(inspect.signature(model.forward).parameters)
        self._cached: OrderedDict[str, ImageFeatures] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> ImageFeatures | None:
        """Return the cached features of the image with this key; None if there are none."""
        return self._cached.get(key)

    def clear(self) -> None:
        """Empty the cache."""
        self._cached.clear()
        self._bytes = 0

    @torch.inference_mode()
    def encode(self, images: Sequence[PromptImage]) -> list[ImageFeatures]:
        """Return the features of `images`, which may repeat. Their content becomes the features."""
        new = {image.key: image for image in images if isinstance(image.content, Image.Image)}
        self._encode(list(new.values()))
        features = [image.content for image in images if isinstance(image.content, ImageFeatures)]
        for image, each in zip(images, features, strict=True):
            self._keep(image.key, each)
        return features

    def _keep(self, key: str, features: ImageFeatures) -> None:
        if key not in self._cached:
            self._cached[key] = features
            self._bytes += features.nbytes
        self._cached.move_to_end(key)
        while self._bytes > CACHE_BYTES and len(self._cached) > 1:
            self._bytes -= self._cached.popitem(last=False)[1].nbytes

    def _encode(self, images: Sequence[PromptImage]) -> None:
        """Replace the pixels of images by features, those of one shape together. Features that are
        done last if a later image fails.
        """
        for start in range(0, len(images), _PREPROCESSED):
            part = [
                (image, *self._preprocess(image)) for image in images[start : start + _PREPROCESSED]
            ]
            part.sort(key=_shape)
            for _, group in groupby(part, key=_shape):
                self._encode_stacked(list(group))

    def _preprocess(self, image: PromptImage) -> tuple[Tensors, str]:
        """The tensors of an image, and its placeholder."""
        made, (placeholder,) = self._processor._process_images([image.content], **self._options)
        return {
            name: value for name, value in made.items() if isinstance(value, torch.Tensor)
        }, placeholder

    @cached_property
    def _options(self) -> Options:
        """The processor's own options for images. They are merged once: that takes as long as a
        small image.
        """
        defaults = self._processor.tokenizer.init_kwargs
        merged = self._processor._merge_kwargs(tokenizer_init_kwargs=defaults, **self._budget)
        return {**merged["images_kwargs"], "return_tensors": "pt"}

    @cached_property
    def _encoder_parameters(self) -> frozenset[str]:
        """What the model's vision side takes."""
        named = frozenset(inspect.signature(self._model.get_image_features).parameters)
        # hands on what it does not name, as Pixtral's sizes
        return named | self._parameters if "kwargs" in named else named

    def _encode_stacked(self, batch: Sequence[_Preprocessed]) -> None:
        """Replace the pixels of images of one shape by features."""
        inputs = {}
        for name in self._encoder_parameters & batch[0][1].keys():
            value = torch.cat([tensors[name] for _, tensors, _ in batch]).to(self._model.device)
            inputs[name] = value.to(self._model.dtype) if value.is_floating_point() else value
        features = self._model.get_image_features(**inputs, return_dict=True).pooler_output
        end = 0
        for image, tensors, placeholder in batch:
            count = len(tensors["pixel_values"]) if isinstance(features, torch.Tensor) else 1
            part = features[end : end + count]
            end += count
            # copies: a view would keep the features of the whole batch
            own: Features = (
                part.clone() if isinstance(part, torch.Tensor) else [each.clone() for each in part]
            )
            rest = {
                name: value
                for name, value in tensors.items()
                if name in self._parameters and name != "pixel_values"
            }
            assert isinstance(image.content, Image.Image), "it is not encoded yet"
            image.content = ImageFeatures(pixel_hash(image.content), placeholder, rest, own)


def _shape(image: _Preprocessed) -> tuple[int, ...]:
    """The shape that images must share to be stacked."""
    return tuple(image[1]["pixel_values"].shape[1:])


def feature_inputs(images: Sequence[ImageFeatures]) -> Inputs:
    """Return the inputs of a model that take the place of the images' pixels, in order."""
    names = images[0].tensors
    tensors = {name: torch.cat([each.tensors[name] for each in images]) for name in names}
    whole = [each.features for each in images if isinstance(each.features, torch.Tensor)]
    features: LibraryObject  # some families' are lists, which the output's class does not say
    if whole:
        features = torch.cat(whole)
    else:
        features = list(chain.from_iterable(each.features for each in images))
    output = BaseModelOutputWithPooling(pooler_output=features)
    return {**tensors, "mm_encoder_outputs": {"image": output}}
