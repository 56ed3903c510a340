"""MagicLens' head: a picture's vector and a text's become one vector.

The two stand as tokens in a small transformer, and a learned query pools what comes out
(Zhang et al. 2024, "MagicLens: Self-Supervised Image Retrieval with Open-Ended
Instructions", ICML; layers as in the authors' code of 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

_CAP = 50.0
"""What attention's logits cannot leave: x becomes 50 tanh(x / 50)."""
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSizes:
    """How large a head is; the usual sizes follow from the first three."""

    width: int
    """Components of the two vectors, and of the one: 512 or 768."""
    layers: int = 4
    heads: int = 8
    """Of attention, also of the pooling: 8 or 16."""
    hidden: int = 0
    """Components between a layer's two linear maps; 0: four times the width."""
    pooled: int = 0
    """Components in which the pooling attends; 0: four times the width."""
    stage: int = 0
    """The stage of the picture tower whose map is the picture's token, by a linear map
    of each channel's mean and maximum; 0, as the authors': the tower's vector is.
    """
    channels: int = 0
    """Of that stage."""


class MagicLensHead(nn.Module):
    """(n, width) of pictures and (n, width) of texts → (n, width), as it comes; with a
    stage, pictures are (n, 2 channels).
    """

    def __init__(self, sizes: HeadSizes) -> None:
        super().__init__()
        wide = 4 * sizes.width
        self.layers = nn.ModuleList(
            [_Layer(sizes.width, sizes.heads, sizes.hidden or wide) for _ in range(sizes.layers)]
        )
        self.of_map = nn.Linear(2 * sizes.channels, sizes.width) if sizes.stage else nn.Identity()
        self.query = nn.Parameter(torch.randn(1, sizes.width) / math.sqrt(sizes.width))
        self.pooling = _Attention(sizes.width, sizes.pooled or wide, sizes.heads, scale_each=True)
        self.norm = nn.LayerNorm(sizes.width, eps=_EPSILON)

    def forward(self, pictures: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """The picture comes first; no positions are added, so that the vectors alone
        tell which is which.
        """
        tokens = torch.stack([self.of_map(pictures), texts], dim=1)  # (n, 2, width)
        for layer in self.layers:
            tokens = layer(tokens)
        query = self.query.expand(len(tokens), 1, -1)
        pooled: torch.Tensor = self.norm(self.pooling(query, tokens))
        return pooled[:, 0]


class _Layer(nn.Module):
    """Attention, then two linear maps with ReLU between, each after a norm and added."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width, eps=_EPSILON)
        self.attention = _Attention(width, width, heads)
        self.before_maps = nn.LayerNorm(width, eps=_EPSILON)
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(n, 2, width) → the same shape."""
        normed = self.before_attention(tokens)
        tokens = tokens + self.attention(normed, normed)
        mapped: torch.Tensor = self.narrow(F.relu(self.widen(self.before_maps(tokens))))
        return tokens + mapped


class _Attention(nn.Module):
    """Dot-product attention whose logits are capped.

    Queries are divided by the root of a head's components; with `scale_each` also
    multiplied, each component, by a learned softplus that begins at 1 for 0.
    """

    def __init__(self, width: int, inner: int, heads: int, *, scale_each: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.of_query = nn.Linear(width, inner)
        self.of_key = nn.Linear(width, inner)
        self.of_value = nn.Linear(width, inner)
        self.back = nn.Linear(inner, width)
        self.scale = nn.Parameter(torch.zeros(inner // heads)) if scale_each else None

    def forward(self, asking: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """(n, t, width) asking, (n, s, width) asked → (n, t, width)."""
        query = self._split(self.of_query(asking))
        key = self._split(self.of_key(tokens))
        query = query / math.sqrt(query.shape[-1])
        if self.scale is not None:
            query = query * F.softplus(self.scale) / math.log(2)
        logits = query @ key.transpose(-1, -2)
        shares = (_CAP * torch.tanh(logits / _CAP)).softmax(-1)
        found = shares @ self._split(self.of_value(tokens))  # (n, heads, t, inner / heads)
        joined: torch.Tensor = self.back(found.transpose(1, 2).flatten(2))
        return joined

    def _split(self, states: torch.Tensor) -> torch.Tensor:
        """(n, t, inner) → (n, heads, t, inner / heads)."""
        shape = (*states.shape[:2], self.heads, -1)
        return states.view(shape).transpose(1, 2)
