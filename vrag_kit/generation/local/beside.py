"""Llama 3.2 looks at pictures beside the prompt: some of its layers attend to what was
seen of them. Pictures that prompts of a batch have in common are looked at once.

Nothing else of a prompt can be read once for several: its words come behind all of its
pictures, and read otherwise with each further one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from transformers import DynamicCache

from vrag_kit.checkpoints import Made
from vrag_kit.generation.local.ruler import Inputs

_PIXELS = ("pixel_values", "aspect_ratio_ids", "aspect_ratio_mask")


def looks_beside(takes: Collection[str]) -> bool:
    """Whether a model is of this kind, by what its forward takes."""
    return "cross_attention_mask" in takes


def looked_once(model: Made, inputs: Inputs, images: Sequence[Sequence[str]]) -> Inputs:
    """`inputs` so that `generate` looks at no picture: each of `images`, the keys of every
    row's pictures in order, was looked at once here, and its layers remember it. Where
    that saves nothing they are as they were.
    """
    at: dict[str, tuple[int, int]] = {}
    for row, keys in enumerate(images):
        for place, key in enumerate(keys):
            at.setdefault(key, (row, place))
    most = max(map(len, images))
    if len(at) == most * len(images):
        return inputs
    rows, places = map(list, zip(*at.values(), strict=True))
    pixels = {name: inputs[name][rows, places].unsqueeze(1) for name in _PIXELS}
    seen = model.model.vision_model(**pixels).last_hidden_state  # picture, 1, tile, patch, number
    seen = model.model.multi_modal_projector(seen).flatten(1, 3)
    numbers = {key: number for number, key in enumerate(at)}
    order = torch.tensor(
        [[numbers[key] for key in keys] + [0] * (most - len(keys)) for keys in images]
    )  # what stands behind a row's own pictures, its mask hides
    remembered = DynamicCache()
    for number, layer in enumerate(model.model.language_model.layers):
        if (attention := getattr(layer, "cross_attn", None)) is None:
            continue
        shape = (*seen.shape[:2], attention.num_key_value_heads, attention.head_dim)
        states = attention.k_norm(attention.k_proj(seen).view(shape))
        values = attention.v_proj(seen).view(shape)
        remembered.update(_laid(states, order), _laid(values, order), number)
    rest = {name: value for name, value in inputs.items() if name not in _PIXELS}
    return {**rest, "past_key_values": remembered}


def _laid(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """States (pictures × tokens × heads × size) in each row's order, as attention takes
    them: rows × heads × tokens × size.
    """
    return states[order.to(states.device)].flatten(1, 2).transpose(1, 2)
