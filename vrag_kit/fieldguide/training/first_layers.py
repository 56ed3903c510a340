"""Two layers before those of a small language model, whose first weights already find
which letter stands before an option.

A small model needs millions of tokens until it finds by itself that what it is about to
say stands further up, behind a letter. These weights do it from the start: the first
layer copies what stands two and three tokens back; the second looks for the token that
was said two tokens ago and takes along what stood before it. All of them are then
trained like any others.
"""

from __future__ import annotations

import math
from typing import Any

import torch

LAYERS = 2
BACK = (2, 2, 3)
"""Tokens that the heads of the first layer look back: to what was just said ("red,
answer"), and to letters before an option of one token or two ("(B) red").
"""
SHARP = 7.0
MATCH = 2.2
APART = 2.0
SMALL = 0.01


def give_first_layers(model: Any, seed: int) -> None:
    """Set the weights of the first two layers of a FastVLM or Qwen2 model; its
    embeddings should be there already, whose size they follow.
    """
    text = model.config.get_text_config()
    generator = torch.Generator().manual_seed(seed)
    size = model.get_input_embeddings().weight.pow(2).mean().sqrt().item()
    copying, matching = model.model.language_model.layers[:LAYERS]
    with torch.no_grad():
        for layer in (copying, matching):
            _make_quiet(layer, generator)
        width = text.hidden_size // text.num_attention_heads
        content = orthogonal(text.hidden_size, generator)
        places = orthogonal(text.hidden_size, generator)
        parts = [slice(head * width, (head + 1) * width) for head in range(len(BACK))]
        said, letter = content[parts[0]], content[parts[1]]  # what is copied, (48, 192)
        written = [places[part] for part in parts]  # where it is written to, (48, 192)
        frequencies = _frequencies(text, width)
        for head, back in enumerate(BACK):
            _look_back(copying.self_attn, parts[head], back, frequencies)
            copying.self_attn.v_proj.weight[parts[head]] = letter if head else said
            copying.self_attn.o_proj.weight[:, parts[head]] = size * written[head].T
        near = [i for i, frequency in enumerate(frequencies.tolist()) if frequency < 0.006]
        rows = torch.tensor(near + [i + width // 2 for i in near])  # which distance hardly turns
        mixed = orthogonal(width, generator)[: len(rows)]
        attention = matching.self_attn
        _look_back(attention, parts[0], BACK[0], frequencies)  # and not where it was just said
        scale = torch.where(torch.arange(width) % (width // 2) < near[0], APART / SHARP, 0.0)
        attention.q_proj.bias[parts[0]] *= -scale
        attention.k_proj.bias[parts[0]] *= scale
        for projection, reads in ((attention.q_proj, written[0]), (attention.k_proj, said)):
            projection.weight[rows] = MATCH * mixed @ reads
        attention.v_proj.weight[parts[0]] = written[1] + written[2]
        attention.o_proj.weight[:, parts[0]] = 2 * size * letter.T


def _make_quiet(layer: Any, generator: torch.Generator) -> None:
    """Weights with which a layer changes next to nothing."""
    attention = layer.self_attn
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
        projection.weight.normal_(std=SMALL, generator=generator)
        projection.bias.zero_()
    for projection in (attention.o_proj, layer.mlp.down_proj):
        projection.weight.normal_(std=SMALL / 10, generator=generator)


def _look_back(attention: Any, rows: slice, back: int, frequencies: torch.Tensor) -> None:
    """A head that attends to the token so many places back, whatever stands there: its
    query and key are constants, which rotary positions turn apart.
    """
    for projection in (attention.q_proj, attention.k_proj):
        projection.weight[rows] = 0
    turned = torch.cat([torch.cos(frequencies * back), -torch.sin(frequencies * back)])
    attention.q_proj.bias[rows] = SHARP * turned
    attention.k_proj.bias[rows] = SHARP * torch.cat(
        [torch.ones_like(frequencies), torch.zeros_like(frequencies)]
    )


def _frequencies(text: Any, width: int) -> torch.Tensor:
    """Of a head's pairs of dimensions, in radians a token, shape (width / 2,)."""
    theta = text.rope_parameters["rope_theta"]
    return torch.exp(-math.log(theta) * torch.arange(0, width, 2) / width)


def orthogonal(size: int, generator: torch.Generator) -> torch.Tensor:
    """A random orthogonal matrix, shape (size, size)."""
    return torch.as_tensor(torch.linalg.qr(torch.randn((size, size), generator=generator))[0])
