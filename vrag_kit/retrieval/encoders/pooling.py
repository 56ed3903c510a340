"""Pools a text's token states into one vector, wherever its padding is."""

from __future__ import annotations

import torch

POOLINGS = ("cls", "mean", "last")


def pool(states: torch.Tensor, mask: torch.Tensor, how: str) -> torch.Tensor:
    """Pools token states of shape (n, length, d) into rows of shape (n, d). The mask, shape (n,
    length), is 1 where a token is real.

    `how` is one of `POOLINGS`: the first real token, the mean of the real ones, the last real one.
    Each text has at least one real token.
    """
    rows = torch.arange(len(states), device=states.device)
    if how == "cls":
        return states[rows, mask.int().argmax(1)]
    if how == "last":
        return states[rows, mask.shape[1] - 1 - mask.int().flip(1).argmax(1)]
    weights = mask.unsqueeze(-1).float()
    return (states.float() * weights).sum(1) / weights.sum(1)
