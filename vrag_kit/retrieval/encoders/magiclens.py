"""MagicLens: a small head fuses a dual encoder's image and instruction vectors into one.

The two vectors are tokens of a small transformer, whose output a learned query pools
(Zhang et al. 2024, "MagicLens: Self-Supervised Image Retrieval with Open-Ended
Instructions", ICML; layers as in the authors' code of 2024).

A checkpoint of this kind is a folder with

    config.json         model_type "magiclens", the fields of `HeadConfig`, and "base":
                        the dual encoder in open_clip's layout, a folder in here or
                        a retriever's name
    model.safetensors   the head's weights

The authors publish JAX parameters as a pickle, which `torch.load` cannot read and nothing
here opens. Their code's ranking can be given as a TREC run. To use their weights, write
them as safetensors where flax is installed (`safetensors.flax.save_file`), then bring names
and shapes into those of `MagicLensHead` and open_clip. Commit aa7cfde holds a converter,
vrag_kit/retrieval/convert_magiclens.py, that was tried on random weights only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vrag_kit.config import Count, Natural, StrictModel
from vrag_kit.retrieval.encoders.base import EncoderInput
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint
from vrag_kit.retrieval.encoders.open_clip import read_open_clip
from vrag_kit.retrieval.encoders.pixels import decode_rgb, normalize_rows

_CAP = 50.0
"""Cap of the attention logits: x becomes 50 tanh(x / 50)."""
_EPSILON = 1e-6


class HeadConfig(StrictModel):
    """Sizes of the head; the usual ones follow from `width`, `layers` and `heads`."""

    width: Count
    """Components of the two input vectors, and of the output: 512 or 768."""
    layers: Count = 4
    heads: Count = 8
    """Attention heads, also of the pooling: 8 or 16."""
    hidden: Natural = 0
    """Components between a layer's two linear maps; 0: four times the width."""
    pooled: Natural = 0
    """Components of the pooling's attention; 0: four times the width."""
    stage: Natural = 0
    """The image tower's stage whose map gives the image token, by a linear map of each channel's
    mean and maximum. With 0, as the authors', the token is the tower's vector.
    """
    channels: Natural = 0
    """Channels of that stage."""


class MagicLensHead(nn.Module):
    """Maps image and text vectors, each (n, width), to fused vectors (n, width), not normalised.
    With a `stage`, images are (n, 2 channels).
    """

    def __init__(self, sizes: HeadConfig) -> None:
        super().__init__()
        self.stage = sizes.stage
        wide = 4 * sizes.width
        self.layers = nn.ModuleList(
            [_Layer(sizes.width, sizes.heads, sizes.hidden or wide) for _ in range(sizes.layers)]
        )
        self.of_map = nn.Linear(2 * sizes.channels, sizes.width) if sizes.stage else nn.Identity()
        self.query = nn.Parameter(torch.randn(1, sizes.width) / math.sqrt(sizes.width))
        self.pooling = _Attention(sizes.width, sizes.pooled or wide, sizes.heads, scale_each=True)
        self.norm = nn.LayerNorm(sizes.width, eps=_EPSILON)

    def forward(self, pictures: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """Fuses image and text, with the image token first. No positions are added: the vectors
        alone distinguish the two.
        """
        tokens = torch.stack([self.of_map(pictures), texts], dim=1)  # (n, 2, width)
        for layer in self.layers:
            tokens = layer(tokens)
        query = self.query.expand(len(tokens), 1, -1)
        pooled: torch.Tensor = self.norm(self.pooling(query, tokens))
        return pooled[:, 0]


class _Layer(nn.Module):
    """Attention, then a two-layer ReLU network, each with pre-norm and residual connection."""

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
        """Maps queries (n, t, width) and tokens (n, s, width) to (n, t, width)."""
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


class MagicLensModel:
    """Encodes an image with an instruction as one vector; an image alone has an empty one."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Loads a head and its base, a dual encoder in open_clip's layout, whose vectors it reads.

        Raises `VragError` as `read_open_clip` and `Checkpoint.read_into`, and for a config.json
        that `HeadConfig` does not fit.
        """
        sizes = checkpoint.read_sizes(HeadConfig)
        _, base = checkpoint.folders
        source = f"local-dir:{base}"
        self._towers = read_open_clip(checkpoint.owner, source, "", checkpoint.device)
        self._head = checkpoint.read_into(MagicLensHead(sizes))
        self._prompts = checkpoint.prompts

    def prepare(self, content: EncoderInput, side: str) -> tuple[str, torch.Tensor]:
        """Returns the text within its prompt, empty unless it is encoded, and the preprocessed
        image. Raises `VragError` for a damaged image.
        """
        text, image = content
        assert image is not None  # a text alone is not encoded
        if text is not None:
            text = self._prompts.get(side, "{text}").replace("{text}", text)
        return text or "", self._towers.pixels(decode_rgb(image.data(), image.where))

    @torch.inference_mode()
    def embed(self, prepared: Sequence[tuple[str, torch.Tensor]], side: str) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d)."""
        texts, pixels = [list(each) for each in zip(*prepared, strict=True)]
        if stage := self._head.stage:
            images = self._towers.stage_features(pixels, stage)
        else:
            images = self._towers.image_features(pixels)
        unique = list(dict.fromkeys(texts))
        rows = self._towers.text_features(unique)[[unique.index(text) for text in texts]]
        return normalize_rows(self._head(images.float(), rows.float()))


load = MagicLensModel
