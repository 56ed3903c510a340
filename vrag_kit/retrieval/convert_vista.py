"""VISTA's own weights as a folder that `load_encoder` reads:

    python -m vrag_kit.retrieval.convert_vista Visualized_base_en_v1.5.pth BGE FOLDER

BGE is the folder of the text encoder that they belong to, with config.json and
tokenizer: BAAI/bge-base-en-v1.5 or BAAI/bge-m3.
"""

from __future__ import annotations

import json
import pickle
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.own_weights import WEIGHTS
from vrag_kit.retrieval.vista import TEXT
from vrag_kit.retrieval.vista_model import TowerSizes

Weights = Mapping[str, torch.Tensor]
_OURS = {
    "bge_embeddings.": "text.embeddings.",
    "bge_encoder.": "text.encoder.",
    "visual_proj.": "project.",
    "model_visual.visual.": "tower.",
}
"""How their names begin → how ours do."""
_UNUSED = (
    "bge_pooler.",
    "bge_embeddings.position_ids",
    "bge_embeddings.token_type_ids",
    "model_visual.text.",
    "model_visual.logit_scale",
    "model_visual.visual.norm.",
    "model_visual.visual.head.",
    "model_visual.visual.rope.",
)
"""What no vector depends on: the tower's own text side and last norm, fixed tables."""
_IN_TOWER = {
    "attn.q_bias": "attn.q_proj.bias",
    "attn.v_bias": "attn.v_proj.bias",
    "attn.inner_attn_ln": "attn.norm",
    "mlp.w1": "mlp.fc1_g",
    "mlp.w2": "mlp.fc1_x",
    "mlp.ffn_ln": "mlp.norm",
    "mlp.w3": "mlp.fc2",
}
_HEAD = 64
"""Components of a head in both published towers."""


def convert_vista(weights: Path, text: Path, folder: Path, *, head: int = _HEAD) -> None:
    """Write a .pth file of VISTA, read with `weights_only`, as a checkpoint; `text` is
    the folder of its text encoder, `head` the components of one of the tower's heads.

    Names are those of the authors' code (FlagEmbedding, visual_bge, whose picture tower
    is EVA02-CLIP's); no published file was at hand to try it on. Raises `VragError` for
    a file that holds more than tensors, and for one whose weights have other names.
    """
    found = _read(weights)
    renamed = {_renamed(name, weights): values.float() for name, values in found.items()}
    renamed.pop("", None)
    patch = renamed.get("tower.patch_embed.proj.weight")
    positions = renamed.get("tower.pos_embed")
    if patch is None or positions is None:
        raise VragError(f"{weights}: no picture tower (model_visual.visual.*); is this VISTA?")
    side = round((positions.shape[1] - 1) ** 0.5)
    sizes = TowerSizes(
        image_size=side * patch.shape[-1],
        patch=patch.shape[-1],
        layers=len({name.split(".")[2] for name in renamed if name.startswith("tower.blocks.")}),
        heads=patch.shape[0] // head,
        hidden=len(renamed["tower.blocks.0.mlp.fc1_g.bias"]),
    )
    (folder / TEXT).mkdir(parents=True, exist_ok=True)
    for pattern in ("config.json", "*token*", "vocab*", "*.model"):
        for file in text.glob(pattern):
            shutil.copy(file, folder / TEXT)
    from safetensors.torch import save

    write_file(folder / WEIGHTS, save({name: each.contiguous() for name, each in renamed.items()}))
    stated = {"model_type": "vista", **asdict(sizes)}
    write_file(folder / "config.json", json.dumps(stated, indent=2))


def _read(weights: Path) -> Weights:
    try:
        found = torch.load(weights, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise VragError(
            f"{weights}: cannot be read as weights alone ({str(error).splitlines()[0]}). Fetch the"
            " authors' file again; one that holds more than tensors is not opened."
        ) from error
    return dict(found)


def _renamed(name: str, weights: Path) -> str:
    """Our name of a weight; "" for one that is not used."""
    if name.startswith(_UNUSED) or ".rope." in name:
        return ""
    for theirs, ours in _OURS.items():
        if name.startswith(theirs):
            name = ours + name.removeprefix(theirs)
            break
    else:
        raise VragError(
            f"{weights}: the weight {name!r} has no place in VISTA; expected names that begin with"
            f" {', '.join(_OURS)}."
        )
    if name.startswith("tower."):
        for theirs, ours in _IN_TOWER.items():
            name = re.sub(rf"\b{re.escape(theirs)}\b", ours, name)
    return name


if __name__ == "__main__":
    convert_vista(*map(Path, sys.argv[1:4]))
