"""`FAMILIES`: a table of what is special about families of multimodal models.

A family that is not listed loads by `AutoModelForImageTextToText` and takes the parts of a prompt
in their order. How its processor is called is in `processors`: a list of images for each prompt. A
property that changes answers also belongs in the key of stored answers (`shaping` in `generator`).
`tests/tiny_models.py` has a tiny checkpoint of each family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vrag_kit.checkpoints import LibraryObject, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The special properties of one model family."""

    auto: str = "AutoModelForImageTextToText"
    """The transformers class that loads it."""
    images_first: bool = False
    """Whether all images must come before the text."""
    text_apart: bool = False
    """Whether prompts with images and prompts without any must not share a batch."""
    adapter: tuple[str, str] | None = None
    """(name, subfolder) of an adapter that the model needs to see images well."""
    budget: Callable[[LibraryObject, int], Options] | None = None
    """(processor, tokens) → options of its image processor that limit an image to this number of
    tokens; None if there is no such option.
    """


def _qwen(processor: LibraryObject, tokens: int) -> Options:
    images = processor.image_processor
    area = (images.patch_size * images.merge_size) ** 2  # pixels a token
    most = tokens * area
    least = min(images.size["shortest_edge"], most)
    return {"size": {"shortest_edge": least, "longest_edge": most}}


def _internvl(processor: LibraryObject, tokens: int) -> Options:
    tiles = tokens // processor.image_seq_length - 1  # one is the thumbnail
    if tiles > 1:
        return {"crop_to_patches": True, "max_patches": tiles}
    return {"crop_to_patches": False}


_QWEN = Family(budget=_qwen)
FAMILIES = {
    "qwen2_vl": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen3_vl": _QWEN,
    "internvl": Family(budget=_internvl),
    # Text attends only to the last image before it, so with text between images the question
    # would see one image. In a batch with images, a prompt without any passes through
    # cross-attention layers that it skips when it is alone. The number of tiles cannot be limited,
    # because aspect-ratio ids depend on it; an image of at most 560 pixels takes one tile.
    "mllama": Family(images_first=True, text_apart=True),
    "phi4_multimodal": Family(auto="AutoModelForCausalLM", adapter=("vision", "vision-lora")),
}
"""model_type of a checkpoint's config → family."""
