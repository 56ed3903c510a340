r"""VISTA: encodes an image, a text, or an image before a text as one vector.

Zhou et al. 2024, "VISTA: Visualized Text Embedding for Universal Multi-Modal Retrieval",
ACL; the order of tokens as in the authors' code (FlagEmbedding, visual BGE).

A checkpoint of this kind is a folder with

    config.json         model_type "vista", and the fields of `VisionConfig`
    model.safetensors   all weights
    text/               config.json and tokenizer of the text encoder

The defaults of `VisionConfig` are those of Visualized BGE base; BGE m3 has patch 14,
layers 24, heads 16, hidden 2730. The text encoders are BAAI/bge-base-en-v1.5 and
BAAI/bge-m3. These lines, tried on random weights only, write model.safetensors from the
authors' file:

    import re, torch
    from safetensors.torch import save_file

    unused = re.compile(
        r"bge_pooler|bge_embeddings\.(position|token_type)_ids|.*\.rope\."
        r"|model_visual\.(text|logit_scale|visual\.(norm|head)\.)"
    )
    renamed = {
        r"^bge_embeddings": "text.embeddings",
        r"^bge_encoder": "text.encoder",
        r"^visual_proj": "project",
        r"^model_visual\.visual": "tower",
        r"attn\.(q|v)_bias": r"attn.\1_proj.bias",
        r"attn\.inner_attn_ln": "attn.norm",
        r"mlp\.ffn_ln": "mlp.norm",
        r"mlp\.w1": "mlp.fc1_g",
        r"mlp\.w2": "mlp.fc1_x",
        r"mlp\.w3": "mlp.fc2",
    }
    weights = {}
    stored = torch.load("Visualized_base_en_v1.5.pth", map_location="cpu", weights_only=True)
    for name, values in stored.items():
        if not unused.match(name):
            for theirs, ours in renamed.items():
                name = re.sub(theirs, ours, name)
            weights[name] = values.float().contiguous()
    save_file(weights, "vista/model.safetensors")
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from vrag_kit.checkpoints import LibraryObject
from vrag_kit.config import Count, StrictModel
from vrag_kit.retrieval.encoders.base import EncoderInput
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint, max_text_tokens
from vrag_kit.retrieval.encoders.dual import TextAndImage
from vrag_kit.retrieval.encoders.pixels import (
    decode_rgb,
    normalize_pixels,
    normalize_rows,
    resize_for,
)

TEXT = "text"
"""The folder of the text encoder's configuration and tokenizer."""
MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)


class VisionConfig(StrictModel):
    """Sizes of the image tower, which is as wide as the text encoder."""

    image_size: Count = 224
    patch: Count = 16
    """Side of a patch in pixels: 16 with BGE base, 14 with BGE m3."""
    layers: Count = 12
    heads: Count = 12
    hidden: Count = 2048
    """Components inside a layer's gated map."""


class Vista(nn.Module):
    """Maps pixels and token ids to the first token's state, (n, width), not normalised."""

    def __init__(self, text: LibraryObject, sizes: VisionConfig) -> None:
        """`text` is BERT or XLM-RoBERTa of transformers, without its pooling."""
        super().__init__()
        width = text.config.hidden_size
        self.text = text
        self.tower = _tower(width, sizes)
        self.project = nn.Linear(width, width)

    def forward(self, pixels: torch.Tensor | None, ids: torch.Tensor) -> torch.Tensor:
        """Returns the first token's states, (n, width), for `pixels` (n, 3, side, side) or None.
        `ids` (n, length) include their first and last special tokens, all of one length.
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
        patches = self.project(self.tower.forward_features(pixels)[:, 1:])  # without its own first
        n = patches.shape[1]
        places = torch.arange(1, 1 + n, device=ids.device)
        patches = embeddings.LayerNorm(patches + embeddings.position_embeddings(places))
        behind = torch.arange(1 + n, n + ids.shape[1], device=ids.device)
        first = torch.zeros(1, dtype=behind.dtype, device=ids.device)
        positions = torch.cat([first, behind]).expand(len(ids), -1)
        words = embeddings(input_ids=ids, position_ids=positions)
        return torch.cat([words[:, :1], patches, words[:, 1:]], dim=1)


def _tower(width: int, sizes: VisionConfig) -> LibraryObject:
    """EVA02-CLIP's picture tower up to its last layer, without the norm that follows:
    the authors take the states as they are.
    """
    from timm.models.eva import Eva

    return Eva(
        img_size=sizes.image_size,
        patch_size=sizes.patch,
        embed_dim=width,
        depth=sizes.layers,
        num_heads=sizes.heads,
        mlp_ratio=sizes.hidden / width,
        num_classes=0,
        global_pool="token",
        qkv_fused=False,
        swiglu_mlp=True,
        scale_mlp=True,
        scale_attn_inner=True,
        use_rot_pos_emb=True,
        use_post_transformer_norm=False,
        ref_feat_shape=(16, 16),  # the grid of rotary positions, whatever the patch size
    )


class VistaModel:
    """Encodes inputs as the first token's state at unit length. An image alone is encoded with an
    empty text.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Loads a checkpoint in the module's layout.

        Raises `VragError` as `Checkpoint.read_into`, and for a config.json that `VisionConfig` does
        not fit.
        """
        import transformers

        auto: LibraryObject = transformers
        sizes = checkpoint.read_sizes(VisionConfig)
        folder = checkpoint.folders[0] / TEXT
        with checkpoint.reading():
            config = auto.AutoConfig.from_pretrained(folder)
            self._tokenizer = auto.AutoTokenizer.from_pretrained(folder)
            model = Vista(auto.AutoModel.from_config(config, add_pooling_layer=False), sizes)
        self._model = checkpoint.read_into(model)
        self._size = (sizes.image_size, sizes.image_size)
        self._device = checkpoint.device

    def prepare(self, content: EncoderInput, side: str) -> TextAndImage:
        """Returns the text, and the preprocessed image or None.

        Raises `VragError` for a damaged image.
        """
        text, image = content
        pixels = None
        if image is not None:
            decoded = decode_rgb(image.data(), image.where)
            pixels = resize_for(decoded, self._size, "shortest", "bicubic")
        return TextAndImage(text or "", pixels)

    @torch.inference_mode()
    def embed(self, prepared: Sequence[TextAndImage], side: str) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d). Images without a text are encoded in one
        batch, anything else one at a time.
        """
        bare = all(each.pixels is not None and not each.text for each in prepared)
        if len(prepared) > 1 and not bare:
            return np.concatenate([self.embed([each], side) for each in prepared])
        has_image = prepared[0].pixels is not None
        ids = self._ids(prepared[0].text or "", has_image).expand(len(prepared), -1)
        pixels = None
        if has_image:
            images = [each.pixels for each in prepared]
            pixels = normalize_pixels(images, MEAN, STD, self._device)
        return normalize_rows(self._model(pixels, ids))

    def _ids(self, text: str, has_image: bool) -> torch.Tensor:
        """(1, length): cut where positions end, of which an image takes its part."""
        longest = max_text_tokens(self._tokenizer, self._model.text.config)
        if has_image:
            longest -= self._model.tower.patch_embed.num_patches
        tokens = self._tokenizer([text], truncation=True, max_length=longest, return_tensors="pt")
        ids: torch.Tensor = tokens["input_ids"].to(self._device)
        return ids


load = VistaModel
