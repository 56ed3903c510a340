"""Reuse image states in models with cross-attention (Llama 3.2).

Some of its layers attend to image states next to the prompt. Images that prompts of a batch share
are encoded once. Nothing else of a prompt can be reused: its text follows all of its images, and
its states change with each further one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import DynamicCache

from vrag_kit.checkpoints import LibraryObject
from vrag_kit.generation.local.processors import Inputs

_PIXELS = ("pixel_values", "aspect_ratio_ids", "aspect_ratio_mask")


def cache_cross_attention(
    model: LibraryObject, inputs: Inputs, images: Sequence[Sequence[str]]
) -> Inputs:
    """Return `inputs` with cached image states, so that `generate` encodes no image. `images` holds
    the keys of every row's images in order; each distinct one is encoded once here. If that saves
    nothing, returns the inputs unchanged.
    """
    first: dict[str, tuple[int, int]] = {}
    for row, keys in enumerate(images):
        for place, key in enumerate(keys):
            first.setdefault(key, (row, place))
    most = max(map(len, images))
    if len(first) == most * len(images):
        return inputs
    rows, places = map(list, zip(*first.values(), strict=True))
    pixels = {name: inputs[name][rows, places].unsqueeze(1) for name in _PIXELS}
    encoded = model.model.vision_model(**pixels).last_hidden_state  # image, 1, tile, patch, size
    encoded = model.model.multi_modal_projector(encoded).flatten(1, 3)
    numbers = {key: number for number, key in enumerate(first)}
    order = torch.tensor(
        [[numbers[key] for key in keys] + [0] * (most - len(keys)) for keys in images],
        device=encoded.device,
    )  # the mask hides what stands behind a row's own images
    cache = DynamicCache()
    for number, layer in enumerate(model.model.language_model.layers):
        if (attention := getattr(layer, "cross_attn", None)) is None:
            continue
        shape = (*encoded.shape[:2], attention.num_key_value_heads, attention.head_dim)
        keys = attention.k_norm(attention.k_proj(encoded).view(shape))
        values = attention.v_proj(encoded).view(shape)
        cache.update(_by_row(keys, order), _by_row(values, order), number)
    rest = {name: value for name, value in inputs.items() if name not in _PIXELS}
    return {**rest, "past_key_values": cache}


def _by_row(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """States (images × tokens × heads × size) in each row's order, as attention takes them: rows ×
    heads × tokens × size.
    """
    return states[order].flatten(1, 2).transpose(1, 2)
