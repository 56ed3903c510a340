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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.base import EncoderInput
from vrag_kit.retrieval.encoders.open_clip import OpenClipEncoder, load_open_clip
from vrag_kit.retrieval.encoders.own_weights import load_builtin_weights, read_architecture_config
from vrag_kit.retrieval.encoders.pixels import decode_rgb, normalize_rows
from vrag_kit.retrieval.encoders.source import CheckpointSource
from vrag_kit.retrieval.encoders.towers import TextAndImage
from vrag_kit.types import Document, Query

_CAP = 50.0
"""Cap of the attention logits: x becomes 50 tanh(x / 50)."""
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadConfig:
    """Sizes of the head; the usual ones follow from `width`, `layers` and `heads`."""

    width: int
    """Components of the two input vectors, and of the output: 512 or 768."""
    layers: int = 4
    heads: int = 8
    """Attention heads, also of the pooling: 8 or 16."""
    hidden: int = 0
    """Components between a layer's two linear maps; 0: four times the width."""
    pooled: int = 0
    """Components of the pooling's attention; 0: four times the width."""
    stage: int = 0
    """The image tower's stage whose map gives the image token, by a linear map of each channel's
    mean and maximum. With 0, as the authors', the token is the tower's vector.
    """
    channels: int = 0
    """Channels of that stage."""


class MagicLensHead(nn.Module):
    """Maps image and text vectors, each (n, width), to fused vectors (n, width), not normalised.
    With a `stage`, images are (n, 2 channels).
    """

    def __init__(self, sizes: HeadConfig) -> None:
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


class MagicLensEncoder:
    """Encodes questions as image and text, documents as image and empty text; unit length."""

    normalized = True

    def __init__(
        self,
        towers: OpenClipEncoder,
        head: MagicLensHead,
        *,
        stage: int,
        source: CheckpointSource,
        options: Options,
        query_prompt: str = "{text}",
    ) -> None:
        """`towers` return vectors that are not normalised, or that map of an image with a `stage`.
        `query_prompt` has "{text}" where the question goes.
        """
        self._towers = towers
        self._stage = stage
        self._head = head
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.document_key = source.document_key(options)
        self.modalities = source.modalities
        self.prompts: Mapping[str, str] = {"query": query_prompt}

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d), of questions within their prompt.

        Queries are encoded one at a time, so the result does not depend on other queries.
        """
        rows = []
        for query in queries:
            text, image = self.modalities.of_query(query, self.name)
            if text is not None:
                text = self.prompts["query"].replace("{text}", text)
            rows.append(self.encode_documents([self._prepared(EncoderInput(text, image))]))
        return np.concatenate(rows) if rows else np.empty((0, self._towers.dim), np.float32)

    def prepare(self, document: Document) -> TextAndImage:
        """Returns the preprocessed image, and the text, empty unless it is encoded.

        Raises `VragError` naming a document that lacks an encoded part, or has a damaged image.
        """
        return self._prepared(self.modalities.of_document(document, self.name))

    def _prepared(self, content: EncoderInput) -> TextAndImage:
        text, image = content
        if image is None:
            raise ValueError(f"{self.name} has no vector of a text alone")
        pixels = self._towers.pixels(decode_rgb(image.data(), image.where))
        return TextAndImage(text or "", pixels)

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[TextAndImage]) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d)."""
        pixels = [each.pixels for each in prepared]
        if self._stage:
            pictures = self._towers.stage_features(pixels, self._stage)
        else:
            pictures = self._towers.image_features(pixels)
        said = list(dict.fromkeys(each.text for each in prepared))
        texts = self._towers.text_features(said)
        texts = texts[[said.index(each.text) for each in prepared]]
        return normalize_rows(self._head(pictures.float(), texts.float()))


def load_magiclens(source: CheckpointSource, *, query_prompt: str = "{text}") -> MagicLensEncoder:
    """Load a head and its base, `source.partner`, a dual encoder in open_clip's layout.

    Raises `VragError` as `load_open_clip` and `load_builtin_weights` do, and for a head whose width
    is not that of the base's vectors.
    """
    sizes = HeadConfig(
        **read_architecture_config(source, [field.name for field in fields(HeadConfig)])
    )
    base = source.partner or source.folder
    towers = load_open_clip(str(base), folder=base, device=source.device)
    if towers.dim != sizes.width:
        raise VragError(
            f"{source.owner}: the head takes vectors of {sizes.width} components, but those of its"
            f" base {base.name} have {towers.dim}. Correct `base` in"
            f" {source.folder / 'config.json'}, or train the head on this base."
        )
    head = load_builtin_weights(MagicLensHead(sizes), source)
    options = {"family": "magiclens", "query_prompt": query_prompt}
    return MagicLensEncoder(
        towers,
        head,
        stage=sizes.stage,
        source=source,
        options=options,
        query_prompt=query_prompt,
    )
