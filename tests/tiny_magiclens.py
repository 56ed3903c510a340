"""MagicLens' parameters at a tiny size with random numbers, named and shaped as the
authors' code has them, and its arithmetic in their terms, one row at a time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]
WIDTH, HEADS, EACH, HIDDEN, POOLED = 12, 3, 4, 48, 48
LAYERS = 2
_CLIP_WIDTH, _CLIP_HEADS, _PATCH, _SIDE, _WORDS, _LENGTH = 8, 2, 8, 4, 49408, 77


def parameters(seed: int = 0) -> Arrays:
    """Flat names, with "/" between them, → arrays."""
    rng = np.random.default_rng(seed)
    shapes = {**_head_shapes(), **_clip_shapes()}
    return {
        f"params/{name}": (0.4 * rng.normal(size=shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write(path: Path, arrays: Arrays) -> Path:
    """As `numpy.savez` does."""
    np.savez(path, **arrays)
    return path


def _head_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for number in range(LAYERS):
        place = f"multimodal_encoder/x_layers_{number}"
        for norm in ("layer_norm", "ff_layer/layer_norm"):
            shapes |= {f"{place}/{norm}/{part}": (WIDTH,) for part in ("scale", "bias")}
        shapes |= _attention_shapes(f"{place}/self_attention", EACH)
        shapes[f"{place}/ff_layer/ffn_layer1/linear/w"] = (WIDTH, HIDDEN)
        shapes[f"{place}/ff_layer/ffn_layer1/bias/b"] = (HIDDEN,)
        shapes[f"{place}/ff_layer/ffn_layer2/linear/w"] = (HIDDEN, WIDTH)
        shapes[f"{place}/ff_layer/ffn_layer2/bias/b"] = (WIDTH,)
    pooler = "contrastive_multimodal_pooler"
    shapes |= _attention_shapes(f"{pooler}/pool_attn", POOLED // HEADS)
    shapes[f"{pooler}/pool_attn/per_dim_scale/per_dim_scale"] = (POOLED // HEADS,)
    shapes |= {f"{pooler}/pool_attn_ln/{part}": (WIDTH,) for part in ("scale", "bias")}
    shapes[f"{pooler}/pooling_attn_query"] = (1, WIDTH)
    return shapes


def _attention_shapes(place: str, each: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for part in ("query", "key", "value"):
        shapes[f"{place}/{part}/w"] = (WIDTH, HEADS, each)
        shapes[f"{place}/{part}/b"] = (HEADS, each)
    return {**shapes, f"{place}/post/w": (WIDTH, HEADS, each), f"{place}/post/b": (WIDTH,)}


def _clip_shapes() -> dict[str, tuple[int, ...]]:
    width = _CLIP_WIDTH
    shapes: dict[str, tuple[int, ...]] = {
        "clip/logit_scale": (),
        "clip/visual/conv1/kernel": (_PATCH, _PATCH, 3, width),
        "clip/visual/class_embedding": (width,),
        "clip/visual/positional_embedding": (_SIDE * _SIDE + 1, width),
        "clip/visual/proj/kernel": (width, WIDTH),
        "clip/text/token_embedding/embedding": (_WORDS, width),
        "clip/text/positional_embedding": (_LENGTH, width),
        "clip/text/text_projection/kernel": (width, WIDTH),
    }
    norms = ["visual/ln_pre", "visual/ln_post", "text/ln_final"]
    for tower in ("visual", "text"):
        block = f"{tower}/transformer/resblocks_0"
        norms += [f"{block}/ln_1", f"{block}/ln_2"]
        for part in ("query", "key", "value"):
            shapes[f"clip/{block}/attn/{part}/kernel"] = (width, _CLIP_HEADS, width // _CLIP_HEADS)
            shapes[f"clip/{block}/attn/{part}/bias"] = (_CLIP_HEADS, width // _CLIP_HEADS)
        shapes[f"clip/{block}/attn/out/kernel"] = (_CLIP_HEADS, width // _CLIP_HEADS, width)
        shapes[f"clip/{block}/attn/out/bias"] = (width,)
        shapes[f"clip/{block}/mlp/c_fc/kernel"] = (width, 4 * width)
        shapes[f"clip/{block}/mlp/c_fc/bias"] = (4 * width,)
        shapes[f"clip/{block}/mlp/c_proj/kernel"] = (4 * width, width)
        shapes[f"clip/{block}/mlp/c_proj/bias"] = (width,)
    for norm in norms:
        shapes |= {f"clip/{norm}/{part}": (width,) for part in ("scale", "bias")}
    return shapes


def fused(arrays: Arrays, picture: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The vector of a picture's and a text's, each of shape (width,), at unit length."""
    p = {name.removeprefix("params/"): values.astype(float) for name, values in arrays.items()}
    tokens = np.stack([picture, text]).astype(float)
    for number in range(LAYERS):
        place = f"multimodal_encoder/x_layers_{number}"
        normed = _norm(p, f"{place}/layer_norm", tokens, 1)
        tokens = tokens + _attend(p, f"{place}/self_attention", normed, normed, EACH**-0.5)
        normed = _norm(p, f"{place}/ff_layer/layer_norm", tokens, 1)
        first, second = f"{place}/ff_layer/ffn_layer1", f"{place}/ff_layer/ffn_layer2"
        wide = np.maximum(normed @ p[f"{first}/linear/w"] + p[f"{first}/bias/b"], 0)
        tokens = tokens + wide @ p[f"{second}/linear/w"] + p[f"{second}/bias/b"]
    pooler = "contrastive_multimodal_pooler"
    each = p[f"{pooler}/pool_attn/per_dim_scale/per_dim_scale"]
    scale = 1.442695041 / np.sqrt(POOLED // HEADS) * np.log1p(np.exp(each))
    query = p[f"{pooler}/pooling_attn_query"]
    pooled = _attend(p, f"{pooler}/pool_attn", query, tokens, scale)
    row = _norm(p, f"{pooler}/pool_attn_ln", pooled, 1)[0]
    return row / np.sqrt(np.sum(row * row))


def _attend(
    p: Arrays, place: str, asking: np.ndarray, asked: np.ndarray, scale: float | np.ndarray
) -> np.ndarray:
    query, key, value = (
        np.einsum("td,dnh->tnh", tokens, p[f"{place}/{part}/w"]) + p[f"{place}/{part}/b"]
        for part, tokens in (("query", asking), ("key", asked), ("value", asked))
    )
    logits = np.einsum("tnh,snh->nts", query * scale, key)
    weights = np.exp(50 * np.tanh(logits / 50))
    shares = weights / weights.sum(-1, keepdims=True)
    found = np.einsum("nts,snh->tnh", shares, value)
    return np.einsum("tnh,dnh->td", found, p[f"{place}/post/w"]) + p[f"{place}/post/b"]


def _norm(p: Arrays, place: str, rows: np.ndarray, more: float, eps: float = 1e-6) -> np.ndarray:
    centred = rows - rows.mean(-1, keepdims=True)
    length = np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return centred / length * (more + p[f"{place}/scale"]) + p[f"{place}/bias"]


def seen(arrays: Arrays, pixels: np.ndarray) -> np.ndarray:
    """CLIP's vector of a picture, (side, side, 3), normalised already; as long as it is."""
    p = {name.removeprefix("params/clip/"): each.astype(float) for name, each in arrays.items()}
    rows = [p["visual/class_embedding"]]
    for top in range(0, _SIDE * _PATCH, _PATCH):
        for left in range(0, _SIDE * _PATCH, _PATCH):
            patch = pixels[top : top + _PATCH, left : left + _PATCH]
            rows.append(np.einsum("yxc,yxcw->w", patch, p["visual/conv1/kernel"]))
    tokens = np.stack(rows) + p["visual/positional_embedding"]
    tokens = _norm(p, "visual/ln_pre", tokens, 0, 1e-5)
    tokens = _block(p, "visual/transformer/resblocks_0", tokens, np.zeros((len(rows), len(rows))))
    return _norm(p, "visual/ln_post", tokens[:1], 0, 1e-5)[0] @ p["visual/proj/kernel"]


def read(arrays: Arrays, ids: np.ndarray) -> np.ndarray:
    """CLIP's vector of a text, its tokens' numbers padded with 0; as long as it is."""
    p = {name.removeprefix("params/clip/"): each.astype(float) for name, each in arrays.items()}
    last = int(ids.argmax())
    tokens = p["text/token_embedding/embedding"][ids] + p["text/positional_embedding"]
    ahead = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    tokens = _block(p, "text/transformer/resblocks_0", tokens, ahead)
    normed = _norm(p, "text/ln_final", tokens[last : last + 1], 0, 1e-5)[0]
    return normed @ p["text/text_projection/kernel"]


def _block(p: Arrays, place: str, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    normed = _norm(p, f"{place}/ln_1", tokens, 0, 1e-5)
    query, key, value = (
        np.einsum("td,dnh->nth", normed, p[f"{place}/attn/{part}/kernel"])
        + p[f"{place}/attn/{part}/bias"][:, None]
        for part in ("query", "key", "value")
    )
    logits = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]) + mask
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    found = weights / weights.sum(-1, keepdims=True) @ value
    back = np.einsum("nth,nhd->td", found, p[f"{place}/attn/out/kernel"])
    tokens = tokens + back + p[f"{place}/attn/out/bias"]
    normed = _norm(p, f"{place}/ln_2", tokens, 0, 1e-5)
    wide = normed @ p[f"{place}/mlp/c_fc/kernel"] + p[f"{place}/mlp/c_fc/bias"]
    wide = wide / (1 + np.exp(-1.702 * wide))
    return tokens + wide @ p[f"{place}/mlp/c_proj/kernel"] + p[f"{place}/mlp/c_proj/bias"]
