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
from itertools import accumulate, chain, groupby
from typing import Any

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


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """The vision features of one image."""

    pixel_hash: str
    size: tuple[int, int]  # width and height, as given to the processor
    placeholder: str  # the tokens that stand for it
    tensors: dict[str, torch.Tensor]  # what else its prompt needs, such as image_grid_thw
    features: Features

    @property
    def nbytes(self) -> int:
        """Bytes of the features."""
        return sum(part.nbytes for part in self.features)


@dataclass(frozen=True, slots=True)
class _Preprocessed:
    """One image as the processor prepares it."""

    image: Image.Image
    tensors: dict[str, torch.Tensor]
    placeholder: str


class VisionCache:
    """The vision encoder of a model, with a cache of its features."""

    def __init__(self, model: LibraryObject, processor: PromptProcessor) -> None:
        self._model = model
        self._processor = processor.processor
        self._budget = processor.budget
        self._parameters = frozenset(inspect.signature(model.forward).parameters)
        self._cached: OrderedDict[str, ImageFeatures] = OrderedDict()
        self._bytes = 0
        self.misses = self.hits = 0
        """Images that were encoded, and images whose features were reused."""

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
        new = {}
        for image in images:
            if isinstance(image.content, Image.Image):
                new[image.key] = image
        self._encode(list(new.values()))
        self.misses += len(new)
        self.hits += len(images) - len(new)
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
            chosen = images[start : start + _PREPROCESSED]
            part = [(image, self._preprocess(image.content)) for image in chosen]
            part.sort(key=_shape)
            for _, group in groupby(part, key=_shape):
                stackable = list(group)
                features = self._stacked_features([inputs for _, inputs in stackable])
                for (image, _), each in zip(stackable, features, strict=True):
                    image.content = each

    def _preprocess(self, image: Any) -> _Preprocessed:
        made, (placeholder,) = self._processor._process_images([image], **self._options)
        tensors = {name: value for name, value in made.items() if isinstance(value, torch.Tensor)}
        return _Preprocessed(image, tensors, placeholder)

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

    def _stacked_features(self, batch: Sequence[_Preprocessed]) -> list[ImageFeatures]:
        """The features of images of one shape."""
        inputs = {}
        for name in self._encoder_parameters & batch[0].tensors.keys():
            value = torch.cat([each.tensors[name] for each in batch]).to(self._model.device)
            inputs[name] = value.to(self._model.dtype) if value.is_floating_point() else value
        features = self._model.get_image_features(**inputs, return_dict=True).pooler_output
        counts = [1] * len(batch)
        if isinstance(features, torch.Tensor):
            counts = [len(each.tensors["pixel_values"]) for each in batch]
        ends = accumulate(counts)
        return [
            self._image_features(each, features[end - count : end])
            for each, count, end in zip(batch, counts, ends, strict=True)
        ]

    def _image_features(self, image: _Preprocessed, features: Features) -> ImageFeatures:
        tensors = {
            name: value
            for name, value in image.tensors.items()
            if name in self._parameters and name != "pixel_values"
        }
        # copies: a view would keep the features of the whole batch
        own: Features = (
            features.clone()
            if isinstance(features, torch.Tensor)
            else [part.clone() for part in features]
        )
        pixels = image.image
        return ImageFeatures(pixel_hash(pixels), pixels.size, image.placeholder, tensors, own)


def _shape(image: tuple[PromptImage, _Preprocessed]) -> tuple[int, ...]:
    """The shape that images must share to be stacked."""
    return tuple(image[1].tensors["pixel_values"].shape[1:])


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
