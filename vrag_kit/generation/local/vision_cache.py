"""Cache of vision features: a recurring image is decoded, preprocessed and encoded once.

transformers lets a model take ready features (`mm_encoder_outputs`) in place of pixels. For each
image, the cache therefore keeps the text that stands for it in the prompt, its small tensors (such
as Qwen's grid), and its features.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby

import torch
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.checkpoints import LibraryObject, Options

KEEP_BYTES = 1 << 30
"""Maximum bytes of cached features; the least recently used are dropped first."""

_AT_ONCE = 32
"""Pictures made ready together."""

Features = torch.Tensor | list[torch.Tensor]
"""Rows of a tensor, or a list of tensors, depending on the family."""


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """The cached vision features of one image."""

    pixels: str  # hash of its pixels
    size: tuple[int, int]  # width and height, as given to the processor
    words: str  # the placeholder tokens that stand for it
    tensors: dict[str, torch.Tensor]  # what else its prompt needs, such as image_grid_thw
    features: Features


@dataclass(frozen=True, slots=True)
class _Ready:
    """One picture as its processor makes it ready."""

    picture: Image.Image
    tensors: dict[str, torch.Tensor]
    words: str  # the placeholder tokens

    @property
    def shape(self) -> tuple[int, ...]:
        """What pictures must share to be stacked."""
        return tuple(self.tensors["pixel_values"].shape[1:])


class VisionCache:
    """The vision encoder of a model, with a cache of its features."""

    def __init__(self, model: LibraryObject, processor: LibraryObject, budget: Options) -> None:
        self._model = model
        self._processor = processor
        self._budget = dict(budget)
        self._takes = frozenset(inspect.signature(model.forward).parameters)
        self._seen: OrderedDict[str, ImageFeatures] = OrderedDict()
        self._bytes = 0
        self.misses = self.remembered = 0
        """Images encoded by the vision tower, and images reused from the cache."""

    def get(self, key: str) -> ImageFeatures | None:
        """Return the cached features of the image with this key; None if there are none."""
        return self._seen.get(key)

    @torch.inference_mode()
    def encode(
        self, pictures: dict[str, Image.Image | ImageFeatures], wanted: Sequence[str]
    ) -> list[ImageFeatures]:
        """Return the features of the `wanted` images (keys, with repeats).

        `pictures` has them all; new images are replaced in it by their features.
        """
        seen: dict[str, ImageFeatures] = {}
        new: dict[str, Image.Image] = {}
        for key in wanted:
            picture = pictures[key]
            if isinstance(picture, ImageFeatures):
                seen[key] = picture
            else:
                new[key] = picture
        for key, look in self._looks(new):  # kept at once, should a later one fail
            seen[key] = look
            pictures[key] = look
        self.misses += len(new)
        self.remembered += len(wanted) - len(new)
        for key in wanted:
            self._keep(key, seen[key])
        return [seen[key] for key in wanted]

    def _looks(self, new: Mapping[str, Image.Image]) -> Iterator[tuple[str, ImageFeatures]]:
        """(key, look) of new pictures, some at once, those of one shape together."""
        keys = list(new)
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            ready = self._process({key: new[key] for key in part})
            shapes = {key: ready[key].shape for key in part}
            by_shape = sorted(part, key=shapes.__getitem__)
            for _, group in groupby(by_shape, key=shapes.__getitem__):
                alike = list(group)  # others cannot be stacked
                looks = self._encode([ready[key] for key in alike])
                yield from zip(alike, looks, strict=True)

    def _process(self, new: Mapping[str, Image.Image]) -> dict[str, _Ready]:
        """Pictures made ready, those of one size in one call."""
        ready: dict[str, _Ready] = {}
        by_size = sorted(new, key=lambda key: new[key].size)
        for _, group in groupby(by_size, key=lambda key: new[key].size):
            alike = list(group)
            pictures = [new[key] for key in alike]
            made = self._made(pictures) or [self._made([each])[0] for each in pictures]
            ready.update(zip(alike, made, strict=True))
        return ready

    def _made(self, pictures: Sequence[Image.Image]) -> list[_Ready]:
        """Pictures of one size made ready: they have equally many rows of each tensor. Empty
        where a family lays several of them out otherwise.
        """
        made, words = self._processor._process_images(pictures, **self._options)
        tensors = {
            name: value.chunk(len(pictures))
            for name, value in made.items()
            if isinstance(value, torch.Tensor)
        }
        if any(len(parts) != len(pictures) for parts in tensors.values()):
            return []
        return [
            _Ready(picture, {name: parts[at] for name, parts in tensors.items()}, words[at])
            for at, picture in enumerate(pictures)
        ]

    @cached_property
    def _options(self) -> Options:
        """Those that the processor itself would use of pictures; it takes as long over them
        as over a small picture.
        """
        defaults = self._processor.tokenizer.init_kwargs
        merged = self._processor._merge_kwargs(tokenizer_init_kwargs=defaults, **self._budget)
        return {**merged["images_kwargs"], "return_tensors": "pt"}

    @cached_property
    def _accepted(self) -> frozenset[str]:
        """What the model's vision side takes."""
        accepted = frozenset(inspect.signature(self._model.get_image_features).parameters)
        # hands on what it does not name, as Pixtral's sizes
        return accepted | self._takes if "kwargs" in accepted else accepted

    def _encode(self, ready: Sequence[_Ready]) -> list[ImageFeatures]:
        """What pictures of one shape look like, stacked."""
        inputs = {}
        for name in ready[0].tensors:
            if name in self._accepted:
                stacked = torch.cat([each.tensors[name] for each in ready])
                inputs[name] = _to(stacked, self._model)
        features = self._model.get_image_features(**inputs, return_dict=True).pooler_output
        counts = [1] * len(ready)
        if isinstance(features, torch.Tensor):
            counts = [len(each.tensors["pixel_values"]) for each in ready]
        seen, at = [], 0
        for each, count in zip(ready, counts, strict=True):
            seen.append(self._seen_of(each, features[at : at + count]))
            at += count
        return seen

    def _seen_of(self, ready: _Ready, features: Features) -> ImageFeatures:
        """A picture with its own part of the features."""
        tensors = {
            name: value
            for name, value in ready.tensors.items()
            if name in self._takes and name != "pixel_values"
        }
        if isinstance(features, torch.Tensor):
            own: Features = features.clone()
        else:
            own = [part.clone() for part in features]
        picture = ready.picture
        return ImageFeatures(pixel_hash(picture), picture.size, ready.words, tensors, own)

    def clear(self) -> None:
        """Empty the cache."""
        self._seen.clear()
        self._bytes = 0

    def _keep(self, key: str, seen: ImageFeatures) -> None:
        if key not in self._seen:
            self._seen[key] = seen
            self._bytes += _size(seen)
        self._seen.move_to_end(key)
        while self._bytes > KEEP_BYTES and len(self._seen) > 1:
            self._bytes -= _size(self._seen.popitem(last=False)[1])


def batch_features(seen: Sequence[ImageFeatures]) -> tuple[Features, dict[str, torch.Tensor]]:
    """Return (features, small tensors) of several images in order, concatenated for a batch."""
    tensors = {name: torch.cat([each.tensors[name] for each in seen]) for name in seen[0].tensors}
    whole = [each.features for each in seen if isinstance(each.features, torch.Tensor)]
    if whole:
        return torch.cat(whole), tensors
    return list(chain.from_iterable(each.features for each in seen)), tensors


def _to(value: torch.Tensor, model: LibraryObject) -> torch.Tensor:
    if value.is_floating_point():
        return value.to(model.device, model.dtype)
    return value.to(model.device)


def _size(seen: ImageFeatures) -> int:
    parts = [seen.features] if isinstance(seen.features, torch.Tensor) else seen.features
    return sum(part.numel() * part.element_size() for part in parts)
