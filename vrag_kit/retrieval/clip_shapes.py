"""Whether the configuration of a CLIP, in either layout, and its weights are of one model.

Widths, patches, words, projections and numbers of layers are compared with the shapes in
the headers; what a configuration does not say is not.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from vrag_kit.checkpoint_files import damaged, tensor_shapes
from vrag_kit.plain import Json

_PATCHES = "vision_model.embeddings.patch_embedding.weight"
_WORDS = "text_model.embeddings.token_embedding.weight"
_SIZES = {
    "open_clip_config.json": (
        ("model_cfg.embed_dim", "visual.proj", 1),
        ("model_cfg.embed_dim", "text_projection", 1),
        ("model_cfg.vision_cfg.width", "visual.positional_embedding", 1),
        ("model_cfg.vision_cfg.width", "visual.conv3.weight", 0),  # of a ResNet
        ("model_cfg.vision_cfg.patch_size", "visual.conv1.weight", 2),
        ("model_cfg.text_cfg.width", "token_embedding.weight", 1),
        ("model_cfg.text_cfg.vocab_size", "token_embedding.weight", 0),
    ),
    "config.json": (
        ("projection_dim", "visual_projection.weight", 0),
        ("projection_dim", "text_projection.weight", 0),
        ("vision_config.hidden_size", _PATCHES, 0),
        ("vision_config.patch_size", _PATCHES, 2),
        ("text_config.hidden_size", _WORDS, 1),
        ("text_config.vocab_size", _WORDS, 0),
    ),
}
"""File → (what it says, the weight that shows it, the axis of its shape)."""
_LAYERS = {
    "open_clip_config.json": (
        ("model_cfg.vision_cfg.layers", "visual.transformer.resblocks."),
        *((f"model_cfg.vision_cfg.layers.{i}", f"visual.layer{i + 1}.") for i in range(4)),
        ("model_cfg.text_cfg.layers", "transformer.resblocks."),
    ),
    "config.json": (
        ("vision_config.num_hidden_layers", "vision_model.encoder.layers."),
        ("text_config.num_hidden_layers", "text_model.encoder.layers."),
    ),
}
"""File → (what it says, how the weights of each layer begin)."""


def check_shapes(folder: Path, owner: str) -> None:
    """Raise `VragError` where a configuration in `folder` says another size than its
    weights have; `owner` ("retriever 'x'") begins the message. Other models pass.
    """
    shapes = tensor_shapes(folder, owner)
    for file, rows in _SIZES.items():
        path = folder / file
        stated = _stated(path)
        for key, name, axis in rows:
            shape = shapes.get(name) or shapes.get(f"text.{name}") or ()
            said = _said(stated, key)
            if said is not None and axis < len(shape) and said != shape[axis]:
                expected = f"{shape[axis]:,}, as {name!r} is of shape {shape}"
                raise damaged(owner, path, f"says {key}: {said:,}", expected)
        for key, begins in _LAYERS[file]:
            pattern = re.compile(rf"(?:text\.)?{re.escape(begins)}(\d+)\.")
            there = {found[1] for name in shapes if (found := pattern.match(name))}
            said = _said(stated, key)
            if said is not None and there and said != len(there):
                expected = f"{len(there)}, as so many layers {begins}… have weights"
                raise damaged(owner, path, f"says {key}: {said}", expected)


def _stated(path: Path) -> Json:
    """What a configuration says, {} where there is none; older ones of transformers say
    some of it twice, and the second is read.
    """
    if not path.is_file():
        return {}
    stated: Json = json.loads(path.read_text(encoding="utf-8"))
    for tower in ("text_config", "vision_config"):
        if isinstance(again := stated.get(f"{tower}_dict"), dict):
            stated[tower] = {**(stated.get(tower) or {}), **again}
    return stated


def _said(stated: Json, key: str) -> int | None:
    """The number behind a key, "a.b" of a mapping in a mapping, "a.0" of a list; None
    where there is none.
    """
    found: object = stated
    for part in key.split("."):
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found if type(found) is int else None
