"""A tiny MagicLens with random weights, and its head's arithmetic by hand, one row at a time.

The arithmetic follows the authors' code (google-deepmind/magiclens).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import open_clip
import torch
from safetensors.torch import load_file, save_file

from vrag_kit.retrieval.encoders.magiclens import HeadConfig, MagicLensHead

WIDTH, HEADS, LAYERS, HIDDEN, POOLED, SIDE = 12, 3, 2, 40, 48, 32
MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
Arrays = dict[str, np.ndarray]


def write(folder: Path) -> Path:
    """The checkpoint of a head, and in it the open_clip model that it stands on."""
    torch.manual_seed(0)
    sizes = {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "hidden": HIDDEN, "pooled": POOLED}
    weights = MagicLensHead(HeadConfig(**sizes)).state_dict()
    weights = {name: values + 0.4 * torch.randn_like(values) for name, values in weights.items()}
    config = {"model_type": "magiclens", "base": "clip", **sizes}
    vision = {"image_size": SIDE, "patch_size": 8, "width": 8, "layers": 1, "head_width": 4}
    text = {"context_length": 77, "vocab_size": 49408, "width": 8, "heads": 2, "layers": 1}
    model = {"embed_dim": WIDTH, "quick_gelu": True, "vision_cfg": vision, "text_cfg": text}
    pixels = {"mean": MEAN, "std": STD, "interpolation": "bilinear", "resize_mode": "squash"}
    clip = open_clip.CLIP(**model).state_dict()
    (folder / "clip").mkdir(parents=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {name: each.contiguous() for name, each in clip.items()},
        folder / "clip" / "open_clip_model.safetensors",
    )
    stated = {"model_cfg": model, "preprocess_cfg": pixels}
    (folder / "clip" / "open_clip_config.json").write_text(json.dumps(stated))
    return folder


def fused(folder: Path, picture: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The vector of a picture's and a text's, each of shape (width,), at unit length."""
    stored = load_file(folder / "model.safetensors")
    p = {name: values.double().numpy() for name, values in stored.items()}
    tokens = np.stack([picture, text]).astype(float)
    for number in range(LAYERS):
        place = f"layers.{number}"
        normed = _norm(p, f"{place}.before_attention", tokens)
        scale = (WIDTH // HEADS) ** -0.5
        tokens = tokens + _attend(p, f"{place}.attention", normed, normed, scale)
        normed = _norm(p, f"{place}.before_maps", tokens)
        wide = np.maximum(_map(p, f"{place}.widen", normed), 0)
        tokens = tokens + _map(p, f"{place}.narrow", wide)
    scale = 1.442695041 / np.sqrt(POOLED // HEADS) * np.log1p(np.exp(p["pooling.scale"]))
    row = _norm(p, "norm", _attend(p, "pooling", p["query"], tokens, scale))[0]
    return row / np.sqrt(np.sum(row * row))


def _attend(
    p: Arrays, place: str, asking: np.ndarray, asked: np.ndarray, scale: float | np.ndarray
) -> np.ndarray:
    query, key, value = (
        _map(p, f"{place}.{part}", tokens).reshape(len(tokens), HEADS, -1)
        for part, tokens in (("of_query", asking), ("of_key", asked), ("of_value", asked))
    )
    logits = np.einsum("tnh,snh->nts", query * scale, key)
    weights = np.exp(50 * np.tanh(logits / 50))
    shares = weights / weights.sum(-1, keepdims=True)
    found = np.einsum("nts,snh->tnh", shares, value)
    return _map(p, f"{place}.back", found.reshape(len(asking), -1))


def _map(p: Arrays, name: str, rows: np.ndarray) -> np.ndarray:
    return rows @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def _norm(p: Arrays, name: str, rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(-1, keepdims=True)
    length = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    return centred / length * p[f"{name}.weight"] + p[f"{name}.bias"]
