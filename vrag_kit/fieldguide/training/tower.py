"""The vision tower of the answerers and of the encoder of worn pictures: a timm ResNet, as
FastVLM's vision tower is a timm model; what it is given, and what it sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import CLIPImageProcessor, TimmWrapperConfig

IMAGE_SIZE = 96  # side of a photograph, pixels
MEAN, STD = 0.5, 0.25
ARCHITECTURE = "resnet10t"  # as timm names it
FEATURES = 256
CHANNELS = (32, 64, 128, FEATURES)  # of its four stages
_AT_ONCE = 100  # pictures


def build_tower() -> nn.Module:
    """The tower with random weights: (n, 3, 96, 96) → (n, 256, 3, 3)."""
    import timm

    return timm.create_model(ARCHITECTURE, num_classes=0, global_pool="", channels=list(CHANNELS))


def tower_with(weights: Mapping[str, torch.Tensor]) -> nn.Module:
    """The tower with these weights."""
    tower = build_tower()
    tower.load_state_dict(weights)
    return tower


def tower_weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    """The tower's weights, float32, in a model that is shipped with one (safetensors)."""
    from safetensors.torch import load_file

    found = {}
    for name, value in load_file(checkpoint).items():
        if "timm_model." in name:
            found[name.split("timm_model.", 1)[1]] = value.float()
    return found


def to_input(pixels: torch.Tensor) -> torch.Tensor:
    """uint8 (n, 3, height, width) → what the tower takes: float32, same shape, about zero
    mean and unit variance.
    """
    return ((pixels.float() / 255 - MEAN) / STD).contiguous(memory_format=torch.channels_last)


@torch.inference_mode()
def seen_by(tower: nn.Module, pixels: np.ndarray) -> np.ndarray:
    """What the tower sees in pictures, uint8 (n, height, width, 3): float16, shape (n,
    places, 256).
    """
    # torch documents memory_format, but its types leave it out
    tower.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    parts = []
    for start in range(0, len(pixels), _AT_ONCE):
        some = torch.from_numpy(pixels[start : start + _AT_ONCE]).permute(0, 3, 1, 2)
        parts.append(tower(to_input(some)).flatten(2).permute(0, 2, 1).half())
    seen: np.ndarray = torch.cat(parts).numpy()
    return seen


def tower_config(*, pooled: bool) -> TimmWrapperConfig:
    """The tower as part of a model of transformers; `pooled`: one vector a picture."""
    from transformers import TimmWrapperConfig

    return TimmWrapperConfig(  # type: ignore[call-arg]  # the last two are not in its signature
        architecture=ARCHITECTURE,
        model_args={"channels": list(CHANNELS)},
        do_pooling=pooled,
        hidden_size=FEATURES,
        num_classes=0,
    )


def image_processor(height: int, width: int) -> CLIPImageProcessor:
    """Makes of a picture what `to_input` makes of its pixels, at this size."""
    from transformers import CLIPImageProcessor

    return CLIPImageProcessor(
        size={"height": height, "width": width},
        do_center_crop=False,
        do_resize=True,
        image_mean=[MEAN] * 3,
        image_std=[STD] * 3,
    )
