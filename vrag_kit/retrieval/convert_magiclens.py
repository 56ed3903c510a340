"""MagicLens' own weights as a folder that `load_encoder` reads.

They are published as pickles of JAX parameters, which this kit does not open: a pickle
can run code. Write them as plain arrays once, where the authors' code and flax are
installed; `params` is what their `load_model` returns:

    from flax.traverse_util import flatten_dict
    numpy.savez("magiclens.npz", **flatten_dict(params, sep="/"))

and then here:

    python -m vrag_kit.retrieval.convert_magiclens magiclens.npz FOLDER
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.own_weights import WEIGHTS

Arrays = Mapping[str, np.ndarray]
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_STD = (0.26862954, 0.26130258, 0.27577711)


def convert_magiclens(arrays: Path, folder: Path) -> None:
    """Write the parameters in an .npz file as a checkpoint: the head in `folder`, the
    CLIP that it stands on, whose towers were trained with it, in `folder`/clip.

    Names and shapes are those of the authors' code (google-deepmind/magiclens, and
    CLIP in google-research/scenic); no published file was at hand to try it on. They
    divide a picture by its brightest value, we by 255: pictures without white differ
    a little. Raises `VragError` for a parameter that is missing or left over.
    """
    with np.load(arrays, allow_pickle=False) as stored:
        found = {name.removeprefix("params/"): stored[name] for name in stored.files}
    taken = _Taken(found, arrays)
    head, sizes = _head(taken)
    clip, config = _clip(taken)
    taken.check_all()
    stated = {"model_type": "magiclens", "base": "clip", **sizes}
    (folder / "clip").mkdir(parents=True, exist_ok=True)
    write_file(folder / "clip" / "open_clip_model.safetensors", _bytes(clip))
    write_file(folder / "clip" / "open_clip_config.json", json.dumps(config, indent=2))
    write_file(folder / WEIGHTS, _bytes(head))
    write_file(folder / "config.json", json.dumps(stated, indent=2))


def _bytes(weights: Mapping[str, np.ndarray]) -> bytes:
    """A safetensors file, which takes an array's memory as it lies."""
    from safetensors.numpy import save

    whole: bytes = save({name: np.array(each, order="C") for name, each in weights.items()})
    return whole


class _Taken:
    """Arrays by name, each of which must be taken."""

    def __init__(self, arrays: Arrays, where: Path) -> None:
        self._left = dict(arrays)
        self._where = where

    def take(self, name: str) -> np.ndarray:
        """One array, float32."""
        if name not in self._left:
            raise VragError(
                f"{self._where}: no parameter {name!r}; expected MagicLens' parameters, flattened"
                ' with "/" between their names.'
            )
        return np.asarray(self._left.pop(name), dtype=np.float32)

    def count(self, pattern: str) -> int:
        """How many numbers stand in the place of the pattern's group: layers."""
        return len({m[1] for name in self._left if (m := re.match(pattern, name))})

    def check_all(self) -> None:
        """Raise `VragError` for an array that nobody took."""
        if self._left:
            first = sorted(self._left)[0]
            raise VragError(
                f"{self._where}: {len(self._left)} parameters have no place in MagicLens, such as"
                f" {first!r}. Expected the parameters of one model, and nothing else."
            )


def _head(taken: _Taken) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """(weights, sizes) of the head."""
    layers = taken.count(r"multimodal_encoder/x_layers_(\d+)/")
    weights: dict[str, np.ndarray] = {}
    for number in range(layers):
        theirs, ours = f"multimodal_encoder/x_layers_{number}", f"layers.{number}"
        weights |= _norm(taken, f"{theirs}/layer_norm", f"{ours}.before_attention")
        _attention(taken, f"{theirs}/self_attention", f"{ours}.attention", weights)
        weights |= _norm(taken, f"{theirs}/ff_layer/layer_norm", f"{ours}.before_maps")
        for their_map, our_map in (("ffn_layer1", "widen"), ("ffn_layer2", "narrow")):
            place = f"{theirs}/ff_layer/{their_map}"
            weights[f"{ours}.{our_map}.weight"] = taken.take(f"{place}/linear/w").T
            weights[f"{ours}.{our_map}.bias"] = taken.take(f"{place}/bias/b")
    pooler = "contrastive_multimodal_pooler"
    heads = _attention(taken, f"{pooler}/pool_attn", "pooling", weights)
    weights["pooling.scale"] = taken.take(f"{pooler}/pool_attn/per_dim_scale/per_dim_scale")
    weights |= _norm(taken, f"{pooler}/pool_attn_ln", "norm")
    weights["query"] = taken.take(f"{pooler}/pooling_attn_query")
    pooled = len(weights["pooling.of_query.bias"])
    width = len(weights["norm.bias"])
    hidden = weights["layers.0.widen.bias"].shape[0] if layers else 0
    sizes = {"width": width, "layers": layers, "heads": heads}
    return weights, {**sizes, "hidden": hidden, "pooled": pooled}


def _attention(taken: _Taken, theirs: str, ours: str, weights: dict[str, np.ndarray]) -> int:
    """Add an attention's four maps to `weights`; returns its number of heads."""
    for their_map, our_map in (("query", "of_query"), ("key", "of_key"), ("value", "of_value")):
        array = taken.take(f"{theirs}/{their_map}/w")  # (width, heads, each)
        weights[f"{ours}.{our_map}.weight"] = array.reshape(array.shape[0], -1).T
        weights[f"{ours}.{our_map}.bias"] = taken.take(f"{theirs}/{their_map}/b").reshape(-1)
    back = taken.take(f"{theirs}/post/w")  # (width, heads, each): from heads to width
    weights[f"{ours}.back.weight"] = back.reshape(back.shape[0], -1)
    weights[f"{ours}.back.bias"] = taken.take(f"{theirs}/post/b")
    return int(back.shape[1])


def _norm(taken: _Taken, theirs: str, ours: str) -> dict[str, np.ndarray]:
    """A norm whose scale is kept as what is added to 1."""
    return {
        f"{ours}.weight": 1 + taken.take(f"{theirs}/scale"),
        f"{ours}.bias": taken.take(f"{theirs}/bias"),
    }


def _clip(taken: _Taken) -> tuple[dict[str, np.ndarray], Options]:
    """(weights, configuration) of CLIP as open_clip has them."""
    visual, text = "clip/visual", "clip/text"
    kernel = taken.take(f"{visual}/conv1/kernel")  # (patch, patch, 3, width)
    weights = {
        "logit_scale": taken.take("clip/logit_scale"),
        "visual.conv1.weight": kernel.transpose(3, 2, 0, 1),
        "visual.class_embedding": taken.take(f"{visual}/class_embedding"),
        "visual.positional_embedding": taken.take(f"{visual}/positional_embedding"),
        "visual.proj": taken.take(f"{visual}/proj/kernel"),
        "positional_embedding": taken.take(f"{text}/positional_embedding"),
        "token_embedding.weight": taken.take(f"{text}/token_embedding/embedding"),
        "text_projection": taken.take(f"{text}/text_projection/kernel"),
    }
    for name in ("ln_pre", "ln_post"):
        weights |= _plain_norm(taken, f"{visual}/{name}", f"visual.{name}")
    weights |= _plain_norm(taken, f"{text}/ln_final", "ln_final")
    seen = _blocks(taken, visual, "visual.", weights)
    read = _blocks(taken, text, "", weights)
    patch, width = kernel.shape[0], kernel.shape[3]
    side = round((len(weights["visual.positional_embedding"]) - 1) ** 0.5)
    vocabulary, text_width = weights["token_embedding.weight"].shape
    model = {
        "embed_dim": weights["visual.proj"].shape[1],
        "quick_gelu": True,
        "vision_cfg": {
            "image_size": side * patch,
            "patch_size": patch,
            "width": width,
            "layers": seen[0],
            "head_width": width // seen[1],
        },
        "text_cfg": {
            "context_length": len(weights["positional_embedding"]),
            "vocab_size": vocabulary,
            "width": text_width,
            "heads": read[1],
            "layers": read[0],
        },
    }
    squashed = {"mean": _MEAN, "std": _STD, "interpolation": "bilinear", "resize_mode": "squash"}
    return weights, {"model_cfg": model, "preprocess_cfg": squashed}


def _blocks(
    taken: _Taken, theirs: str, ours: str, weights: dict[str, np.ndarray]
) -> tuple[int, int]:
    """Add a tower's blocks to `weights`; returns how many there are, and their heads."""
    layers = taken.count(rf"{theirs}/transformer/resblocks_(\d+)/")
    heads = 1
    for number in range(layers):
        place = f"{theirs}/transformer/resblocks_{number}"
        name = f"{ours}transformer.resblocks.{number}"
        parts = [f"{place}/attn/{part}" for part in ("query", "key", "value")]
        kernels = [taken.take(f"{part}/kernel") for part in parts]  # (width, heads, each)
        heads = kernels[0].shape[1]
        joined = [kernel.reshape(len(kernel), -1).T for kernel in kernels]
        biases = [taken.take(f"{part}/bias").reshape(-1) for part in parts]
        back = taken.take(f"{place}/attn/out/kernel")  # (heads, each, width)
        weights |= {
            f"{name}.attn.in_proj_weight": np.concatenate(joined),
            f"{name}.attn.in_proj_bias": np.concatenate(biases),
            f"{name}.attn.out_proj.weight": back.reshape(-1, back.shape[2]).T,
            f"{name}.attn.out_proj.bias": taken.take(f"{place}/attn/out/bias"),
        }
        for norm in ("ln_1", "ln_2"):
            weights |= _plain_norm(taken, f"{place}/{norm}", f"{name}.{norm}")
        for part in ("c_fc", "c_proj"):
            weights[f"{name}.mlp.{part}.weight"] = taken.take(f"{place}/mlp/{part}/kernel").T
            weights[f"{name}.mlp.{part}.bias"] = taken.take(f"{place}/mlp/{part}/bias")
    return layers, int(heads)


def _plain_norm(taken: _Taken, theirs: str, ours: str) -> dict[str, np.ndarray]:
    return {
        f"{ours}.weight": taken.take(f"{theirs}/scale"),
        f"{ours}.bias": taken.take(f"{theirs}/bias"),
    }


if __name__ == "__main__":
    convert_magiclens(Path(sys.argv[1]), Path(sys.argv[2]))
