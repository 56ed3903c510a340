"""Vision features kept between prompts: a picture that recurs is decoded, preprocessed
and looked at once.

transformers lets a model take ready features (`mm_encoder_outputs`) in the place of
pixels. What is kept of a picture is therefore: the text that stands for it in the
prompt, its small tensors (such as Qwen's grid), and its features.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash

KEEP_BYTES = 1 << 30
"""Features kept at most, in bytes; those not used for longest go first."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model made of one picture."""

    pixels: str  # hash of its pixels
    size: tuple[int, int]  # width and height, as given to the processor
    words: str  # the placeholder tokens that stand for it
    tensors: dict[str, torch.Tensor]  # what else its prompt needs, such as image_grid_thw
    features: Any  # rows of a tensor, or a list of tensors, as the family has it


def _process(
    processor: Any, picture: Image.Image, budget: Mapping[str, Any]
) -> tuple[dict[str, torch.Tensor], str]:
    """(tensors, placeholder text) of one picture, with the options that the processor
    itself would use.
    """
    options = processor._merge_kwargs(
        tokenizer_init_kwargs=processor.tokenizer.init_kwargs, **budget
    )["images_kwargs"]
    tensors, (words,) = processor._process_images([picture], **{**options, "return_tensors": "pt"})
    return {
        name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)
    }, words


def _shape(processed: tuple[dict[str, torch.Tensor], str]) -> tuple[int, ...]:
    return tuple(processed[0]["pixel_values"].shape[1:])


class Eyes:
    """The vision side of a model, which remembers what it has seen."""

    def __init__(self, model: Any, processor: Any, budget: Mapping[str, Any]) -> None:
        self._model, self._processor, self._budget = model, processor, dict(budget)
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._bytes = 0
        self.looked = self.remembered = 0
        """Pictures passed through the vision tower, and those that were not again."""

    def recall(self, key: str) -> Seen | None:
        """What is remembered of the picture with this key."""
        return self._seen.get(key)

    @torch.inference_mode()
    def look(self, pictures: dict[str, Image.Image | Seen], wanted: Sequence[str]) -> list[Seen]:
        """What the `wanted` pictures (keys, with repeats) look like.

        `pictures` has them all; those not yet seen are replaced in it by what is seen.
        """
        new = [key for key in dict.fromkeys(wanted) if not isinstance(pictures[key], Seen)]
        for start in range(0, len(new), 32):
            processed = {
                key: _process(self._processor, pictures[key], self._budget)
                for key in new[start : start + 32]
            }  # type: ignore[arg-type]
            for _, alike in groupby(
                sorted(processed, key=lambda key: _shape(processed[key])),
                key=lambda key: _shape(processed[key]),
            ):  # others cannot be stacked
                keys = list(alike)
                pictures.update(
                    zip(
                        keys,
                        self._encode(
                            [pictures[key] for key in keys], [processed[key] for key in keys]
                        ),
                        strict=True,
                    )
                )  # type: ignore[misc]
        self.looked, self.remembered = (
            self.looked + len(new),
            self.remembered + len(wanted) - len(new),
        )
        found: list[Seen] = [pictures[key] for key in wanted]  # type: ignore[misc]
        for key, seen in zip(wanted, found, strict=True):
            self._keep(key, seen)
        return found

    def _encode(
        self, pictures: list[Image.Image], processed: Sequence[tuple[dict[str, torch.Tensor], str]]
    ) -> list[Seen]:
        inputs = {
            name: torch.cat([tensors[name] for tensors, _ in processed]) for name in processed[0][0]
        }
        accepted = inspect.signature(self._model.get_image_features).parameters
        moved = {
            name: _to(value, self._model) for name, value in inputs.items() if name in accepted
        }
        features = self._model.get_image_features(**moved, return_dict=True).pooler_output
        counts = (
            [1] * len(pictures)
            if not isinstance(features, torch.Tensor)
            else [len(tensors["pixel_values"]) for tensors, _ in processed]
        )
        taken = inspect.signature(self._model.forward).parameters
        seen, at = [], 0
        for picture, (tensors, words), count in zip(pictures, processed, counts, strict=True):
            own = features[at : at + count]
            seen.append(
                Seen(
                    pixel_hash(picture),
                    picture.size,
                    words,
                    {
                        name: value
                        for name, value in tensors.items()
                        if name in taken and name != "pixel_values"
                    },
                    (
                        own.clone()
                        if isinstance(own, torch.Tensor)
                        else [part.clone() for part in own]
                    ),
                )
            )
            at += count
        return seen

    def forget(self) -> None:
        """Free the memory."""
        self._seen.clear()
        self._bytes = 0

    def _keep(self, key: str, seen: Seen) -> None:
        if key not in self._seen:
            self._seen[key] = seen
            self._bytes += _size(seen)
        self._seen.move_to_end(key)
        while self._bytes > KEEP_BYTES and len(self._seen) > 1:
            self._bytes -= _size(self._seen.popitem(last=False)[1])


def join(seen: Sequence[Seen]) -> tuple[Any, dict[str, torch.Tensor]]:
    """(features, small tensors) of several pictures in order, as one prompt batch needs
    them.
    """
    first = seen[0].features
    features = (
        torch.cat([s.features for s in seen])
        if isinstance(first, torch.Tensor)
        else [part for s in seen for part in s.features]
    )
    return features, {name: torch.cat([s.tensors[name] for s in seen]) for name in seen[0].tensors}


def _to(value: torch.Tensor, model: Any) -> torch.Tensor:
    return (
        value.to(model.device, model.dtype) if value.is_floating_point() else value.to(model.device)
    )


def _size(seen: Seen) -> int:
    parts = [seen.features] if isinstance(seen.features, torch.Tensor) else seen.features
    return sum(part.numel() * part.element_size() for part in parts)
