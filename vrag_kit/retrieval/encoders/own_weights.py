"""Loads checkpoints of built-in architectures: config.json and model.safetensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from torch import nn

from vrag_kit.checkpoints import Options, check_weights
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.source import CheckpointSource

WEIGHTS = "model.safetensors"
_Module = TypeVar("_Module", bound=nn.Module)


def read_architecture_config(source: CheckpointSource, numbers: Sequence[str]) -> Options:
    """Returns the fields in `numbers` that config.json sets, each a whole number.

    Raises `VragError` for an invalid value, and for an unknown key.
    """
    path = source.folder / "config.json"
    stated = json.loads(path.read_text(encoding="utf-8"))
    found = {name: value for name, value in stated.items() if name not in ("model_type", "base")}
    for name, value in found.items():
        if name not in numbers or not isinstance(value, int) or value < 0:
            raise VragError(
                f"{source.owner}: {path} says {name}: {value!r}; expected whole numbers for"
                f" {', '.join(numbers)}."
            )
    return found


def load_builtin_weights(module: _Module, source: CheckpointSource) -> _Module:
    """Returns the module with the weights of model.safetensors, on the device, in evaluation mode.

    Raises `VragError` when the file is missing or damaged, and for weights that are missing,
    unexpected, of another shape, NaN or infinite.
    """
    from safetensors.torch import load_file

    if source.dtype != "auto":
        raise VragError(
            f"{source.owner}: dtype is {source.dtype!r}, but a checkpoint of this kind is always"
            " computed in float32. Remove the option."
        )
    path = source.folder / WEIGHTS
    with source.reading():
        weights = load_file(path)
    wanted = {name: tuple(values.shape) for name, values in module.state_dict().items()}
    found = {name: tuple(values.shape) for name, values in weights.items()}
    if wrong := sorted(name for name in wanted | found if wanted.get(name) != found.get(name)):
        raise VragError(
            f"{source.owner}: {path} does not fit config.json beside it: {len(wrong)} weights"
            f" differ, such as {wrong[0]!r}, of shape {found.get(wrong[0])} where"
            f" {wanted.get(wrong[0])} is expected. Copy both files again, from one training."
        )
    module.load_state_dict(weights)
    check_weights(module, source.owner)
    return module.to(source.device).eval()
