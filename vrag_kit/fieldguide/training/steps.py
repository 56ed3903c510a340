"""What every training does: an optimizer that leaves biases alone, and a log of its steps."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping

import torch


def adamw(
    parameters: Iterable[torch.nn.Parameter], rate: float, weight_decay: float
) -> torch.optim.AdamW:
    """AdamW over `parameters`; those of one dimension do not decay."""
    every = list(parameters)
    decaying: dict[str, object] = {"params": [each for each in every if each.ndim > 1]}
    others: dict[str, object] = {
        "params": [each for each in every if each.ndim <= 1],
        "weight_decay": 0.0,
    }
    return torch.optim.AdamW(
        [decaying, others], lr=rate, betas=(0.9, 0.98), weight_decay=weight_decay
    )


class Clock:
    """The running mean of a training's loss, and the minutes that it takes."""

    def __init__(self, minutes: float = 0.0, loss: float | None = None) -> None:
        """Starts now; `minutes` were taken before, and the mean was at `loss`."""
        self._began = time.monotonic() - 60 * minutes
        self._loss = loss

    def take(self, loss: float) -> None:
        """Add one step."""
        self._loss = loss if self._loss is None else 0.98 * self._loss + 0.02 * loss

    def row(self, step: int, shares: Mapping[str, float], *, digits: int) -> dict[str, float]:
        """A row of the log, also printed: step, loss, `shares`, minutes."""
        minutes = round((time.monotonic() - self._began) / 60, 1)
        loss = round(self._loss or 0.0, digits)
        row = {"step": step, "loss": loss, **shares, "minutes": minutes}
        print(json.dumps(row), flush=True)
        return row
