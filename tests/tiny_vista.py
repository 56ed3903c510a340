"""VISTA's weights at a tiny size with random numbers, named and shaped as the authors'
code has them, and its arithmetic by hand, one row at a time.
"""

from __future__ import annotations

from math import erf
from pathlib import Path

import numpy as np
import torch

Arrays = dict[str, np.ndarray]
WIDTH, HEADS, LAYERS, HIDDEN, PATCH, SIDE = 16, 2, 2, 20, 8, 3
"""Of the tower; the text encoder has one layer with two heads."""
POSITIONS = 40
_WIDE = 24  # between the text encoder's maps


def text_config() -> dict[str, object]:
    """What the text encoder's BertConfig takes, without its vocabulary's size."""
    return {
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "intermediate_size": _WIDE,
        "max_position_embeddings": POSITIONS,
    }


def weights(words: int, seed: int = 0) -> Arrays:
    """Name → array."""
    rng = np.random.default_rng(seed)
    return {
        name: np.asarray(0.4 * rng.normal(size=shape), np.float32)
        for name, shape in (_text_shapes(words) | _tower_shapes()).items()
    }


def write(path: Path, arrays: Arrays) -> Path:
    """As torch.save writes a state_dict."""
    torch.save({name: torch.from_numpy(values) for name, values in arrays.items()}, path)
    return path


def _pair(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _text_shapes(words: int) -> dict[str, tuple[int, ...]]:
    layer = "bge_encoder.layer.0"
    shapes = {
        "bge_embeddings.word_embeddings.weight": (words, WIDTH),
        "bge_embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "bge_embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    for part in ("query", "key", "value"):
        shapes |= _pair(f"{layer}.attention.self.{part}", WIDTH, WIDTH)
    shapes |= _pair(f"{layer}.attention.output.dense", WIDTH, WIDTH)
    shapes |= _pair(f"{layer}.intermediate.dense", _WIDE, WIDTH)
    shapes |= _pair(f"{layer}.output.dense", WIDTH, _WIDE)
    for norm in (f"{layer}.attention.output", f"{layer}.output", "bge_embeddings"):
        shapes |= _pair(f"{norm}.LayerNorm", WIDTH)
    return {**shapes, **_pair("bge_pooler.dense", WIDTH, WIDTH)}


def _tower_shapes() -> dict[str, tuple[int, ...]]:
    tower = "model_visual.visual"
    shapes: dict[str, tuple[int, ...]] = {
        "model_visual.logit_scale": (),
        "model_visual.text.token_embedding.weight": (5, WIDTH),
        f"{tower}.cls_token": (1, 1, WIDTH),
        f"{tower}.pos_embed": (1, SIDE * SIDE + 1, WIDTH),
        f"{tower}.patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH),
        f"{tower}.patch_embed.proj.bias": (WIDTH,),
        f"{tower}.rope.freqs_cos": (SIDE * SIDE, WIDTH // HEADS),
        **_pair(f"{tower}.norm", WIDTH),
        **_pair(f"{tower}.head", 12, WIDTH),
        **_pair("visual_proj", WIDTH, WIDTH),
    }
    for number in range(LAYERS):
        block = f"{tower}.blocks.{number}"
        for norm in ("norm1", "norm2", "attn.inner_attn_ln"):
            shapes |= _pair(f"{block}.{norm}", WIDTH)
        for part in ("q", "k", "v"):
            shapes[f"{block}.attn.{part}_proj.weight"] = (WIDTH, WIDTH)
        shapes |= {f"{block}.attn.{part}_bias": (WIDTH,) for part in ("q", "v")}
        shapes[f"{block}.attn.rope.freqs_cos"] = (SIDE * SIDE, WIDTH // HEADS)
        shapes |= _pair(f"{block}.attn.proj", WIDTH, WIDTH)
        shapes |= _pair(f"{block}.mlp.w1", HIDDEN, WIDTH) | _pair(f"{block}.mlp.w2", HIDDEN, WIDTH)
        shapes |= _pair(f"{block}.mlp.ffn_ln", HIDDEN) | _pair(f"{block}.mlp.w3", WIDTH, HIDDEN)
    return shapes


def fused(arrays: Arrays, pixels: np.ndarray | None, ids: list[int]) -> np.ndarray:
    """The vector of a picture, (3, side, side), normalised already, and a text."""
    p = {name: values.astype(float) for name, values in arrays.items()}
    places = p["bge_embeddings.position_embeddings.weight"]
    patches = np.empty((0, WIDTH)) if pixels is None else _map(p, "visual_proj", _seen(p, pixels))
    rows = []
    for place, patch in enumerate(patches, start=1):  # 1 … n
        rows.append(patch + places[place])
    words = p["bge_embeddings.word_embeddings.weight"]
    kind = p["bge_embeddings.token_type_embeddings.weight"][0]
    said = []
    for number, token in enumerate(ids):  # the first at 0, the others behind the patches
        place = number + (len(patches) if number else 0)
        said.append(words[token] + places[place] + kind)
    tokens = _norm(p, "bge_embeddings.LayerNorm", np.stack([said[0], *rows, *said[1:]]), 1e-12)
    layer = "bge_encoder.layer.0"
    query, key, value = (
        _heads(_map(p, f"{layer}.attention.self.{part}", tokens))
        for part in ("query", "key", "value")
    )
    back = _map(p, f"{layer}.attention.output.dense", _attend(query, key, value))
    tokens = _norm(p, f"{layer}.attention.output.LayerNorm", tokens + back, 1e-12)
    wide = _map(p, f"{layer}.intermediate.dense", tokens)
    wide = wide * (1 + np.vectorize(erf)(wide / np.sqrt(2))) / 2
    tokens = tokens + _map(p, f"{layer}.output.dense", wide)
    row = _norm(p, f"{layer}.output.LayerNorm", tokens, 1e-12)[0]
    return row / np.sqrt(np.sum(row * row))


def _seen(p: Arrays, pixels: np.ndarray) -> np.ndarray:
    """States of the patches after the tower's last layer, before its norm."""
    tower = "model_visual.visual"
    kernel = p[f"{tower}.patch_embed.proj.weight"]
    rows = [p[f"{tower}.cls_token"][0, 0]]
    for top in range(0, SIDE * PATCH, PATCH):
        for left in range(0, SIDE * PATCH, PATCH):
            patch = pixels[:, top : top + PATCH, left : left + PATCH]
            rows.append(np.einsum("cyx,wcyx->w", patch, kernel))
            rows[-1] = rows[-1] + p[f"{tower}.patch_embed.proj.bias"]
    tokens = np.stack(rows) + p[f"{tower}.pos_embed"][0]
    for number in range(LAYERS):
        block = f"{tower}.blocks.{number}"
        normed = _norm(p, f"{block}.norm1", tokens, 1e-6)
        query = normed @ p[f"{block}.attn.q_proj.weight"].T + p[f"{block}.attn.q_bias"]
        key = normed @ p[f"{block}.attn.k_proj.weight"].T
        value = normed @ p[f"{block}.attn.v_proj.weight"].T + p[f"{block}.attn.v_bias"]
        found = _attend(_turned(_heads(query)), _turned(_heads(key)), _heads(value))
        found = _norm(p, f"{block}.attn.inner_attn_ln", found, 1e-6)
        tokens = tokens + _map(p, f"{block}.attn.proj", found)
        normed = _norm(p, f"{block}.norm2", tokens, 1e-6)
        gate = _map(p, f"{block}.mlp.w1", normed)
        hidden = gate / (1 + np.exp(-gate)) * _map(p, f"{block}.mlp.w2", normed)
        hidden = _norm(p, f"{block}.mlp.ffn_ln", hidden, 1e-6)
        tokens = tokens + _map(p, f"{block}.mlp.w3", hidden)
    return tokens[1:]


def _turned(heads: np.ndarray) -> np.ndarray:
    """Rotary positions on a grid stretched to 16 × 16: the first half of a head's
    components turns by the row, the second by the column, in neighbouring pairs.
    """
    turned = heads.copy()
    half = heads.shape[-1] // 2
    for token in range(1, heads.shape[1]):
        row, column = divmod(token - 1, SIDE)
        for start, place in ((0, row), (half, column)):
            for pair in range(half // 2):
                angle = place / SIDE * 16 / 10_000 ** (2 * pair / half)
                at = start + 2 * pair
                left, right = heads[:, token, at], heads[:, token, at + 1]
                turned[:, token, at] = left * np.cos(angle) - right * np.sin(angle)
                turned[:, token, at + 1] = right * np.cos(angle) + left * np.sin(angle)
    return turned


def _heads(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(len(rows), HEADS, -1).transpose(1, 0, 2)


def _attend(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    logits = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    found = shares / shares.sum(-1, keepdims=True) @ value
    return found.transpose(1, 0, 2).reshape(query.shape[1], -1)


def _map(p: Arrays, name: str, rows: np.ndarray) -> np.ndarray:
    return rows @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def _norm(p: Arrays, name: str, rows: np.ndarray, eps: float) -> np.ndarray:
    centred = rows - rows.mean(-1, keepdims=True)
    length = np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return centred / length * p[f"{name}.weight"] + p[f"{name}.bias"]
