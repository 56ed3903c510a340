"""Refuse weights and devices that would give wrong numbers or a late crash; for retrievers and answerers alike."""

from __future__ import annotations

import torch
from torch import nn

from vrag_kit.errors import VragError


def check_device(device: str) -> None:
    """Raise `VragError` for a device that this machine does not have, before any weights are read."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise VragError(f"device {device!r} cannot be used on this machine ({str(error).splitlines()[0]}). Set the parameter `device` to \"cpu\".") from error


def check_weights(model: nn.Module, owner: str) -> None:
    """Raise `VragError`, naming `owner` ("retriever 'x'") and the tensor, for weights that are NaN or infinite."""
    for name, values in model.state_dict().items():
        if values.is_floating_point() and not torch.isfinite(values).all():
            raise VragError(f"{owner}: weight {name!r} holds {int((~torch.isfinite(values)).sum())} values that are NaN or infinite. "
                            f"The checkpoint is damaged; fetch or train it again.")
