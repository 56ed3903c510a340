"""VISTA: a text encoder that reads a picture's patches as tokens before the text.

Zhou et al. 2024, "VISTA: Visualized Text Embedding for Universal Multi-Modal Retrieval",
ACL; the order of tokens as in the authors' code (FlagEmbedding, visual BGE).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from vrag_kit.checkpoints import Made, Options

_EVA02: Options = {
    "num_classes": 0,
    "global_pool": "token",
    "qkv_fused": False,
    "swiglu_mlp": True,
    "scale_mlp": True,
    "scale_attn_inner": True,
    "use_rot_pos_emb": True,
    "use_post_transformer_norm": False,
    "ref_feat_shape": (16, 16),  # the grid of rotary positions, whatever the patch size
}
"""What is the same in all of EVA02-CLIP's towers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerSizes:
    """How large the picture tower is; as wide as the text encoder."""

    image_size: int = 224
    patch: int = 16
    """Side of a patch in pixels: 16 with BGE base, 14 with BGE m3."""
    layers: int = 12
    heads: int = 12
    hidden: int = 2048
    """Components inside a layer's gated map."""


class Vista(nn.Module):
    """Pixels and token ids → the state of the first token, (n, width), as it comes."""

    def __init__(self, text: Made, sizes: TowerSizes) -> None:
        """`text` is BERT, or XLM-RoBERTa, of transformers, without its pooling."""
        super().__init__()
        width = text.config.hidden_size
        self.text = text
        self.tower = _tower(width, sizes)
        self.project = nn.Linear(width, width)

    @property
    def n_patches(self) -> int:
        """Tokens of a picture."""
        return int(self.tower.patch_embed.num_patches)

    def forward(self, pixels: torch.Tensor | None, ids: torch.Tensor) -> torch.Tensor:
        """`pixels` (n, 3, side, side) or None; `ids` (n, length) with their first and
        last marks, all of one length.
        """
        if pixels is None:
            tokens = self.text.embeddings(input_ids=ids)
        else:
            tokens = self._tokens(pixels, ids)
        states: torch.Tensor = self.text.encoder(tokens).last_hidden_state
        return states[:, 0]

    def _tokens(self, pixels: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """The text's first token at position 0, patches at 1 … n, the text after them.

        Patches get no type, as the text does; both share positions and norm.
        """
        embeddings = self.text.embeddings
        patches = self.project(self._patches(pixels))
        n = patches.shape[1]
        places = torch.arange(1, 1 + n, device=ids.device)
        patches = embeddings.LayerNorm(patches + embeddings.position_embeddings(places))
        behind = torch.arange(1 + n, n + ids.shape[1], device=ids.device)
        first = torch.zeros(1, dtype=behind.dtype, device=ids.device)
        positions = torch.cat([first, behind]).expand(len(ids), -1)
        words = embeddings(input_ids=ids, position_ids=positions)
        return torch.cat([words[:, :1], patches, words[:, 1:]], dim=1)

    def _patches(self, pixels: torch.Tensor) -> torch.Tensor:
        """(n, patches, width): the tower's last states, without its own first token."""
        states: torch.Tensor = self.tower.forward_features(pixels)
        return states[:, 1:]


def _tower(width: int, sizes: TowerSizes) -> Made:
    """EVA02-CLIP's picture tower up to its last layer, without the norm that follows:
    the authors take the states as they are.
    """
    from timm.models.eva import Eva

    own: Options = {
        "img_size": sizes.image_size,
        "patch_size": sizes.patch,
        "embed_dim": width,
        "depth": sizes.layers,
        "num_heads": sizes.heads,
        "mlp_ratio": sizes.hidden / width,
    }
    return Eva(**own, **_EVA02)
