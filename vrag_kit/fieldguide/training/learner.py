"""A model that learns: its optimizer, its learning rate, one step, and the state from which
a training that was cut goes on.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any  # model, optimizer and schedule share no type

import torch

from vrag_kit.files import write_file
from vrag_kit.plain import Json


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


def rise_and_fall(step: int, steps: int, *, rise: int, least: float = 0.0) -> float:
    """Share of the highest rate at a step counted from 0: straight up in `rise` steps,
    beside that down a cosine to `least`.
    """
    fall = 0.5 * (1 + math.cos(math.pi * step / steps))
    return min(1.0, (step + 1) / rise) * (least + (1 - least) * fall)


class Learner:
    """A model, its optimizer, and the share of the highest rate at each step."""

    def __init__(
        self, model: Any, optimizer: torch.optim.Optimizer, speed: Callable[[int], float]
    ) -> None:
        self._optimizer = optimizer
        # a plain function, of which the state holds nothing
        self._schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: speed(step))
        self._taught = [each for each in model.parameters() if each.requires_grad]
        self._parts: dict[str, Any] = {
            "model": model,
            "optimizer": optimizer,
            "schedule": self._schedule,
        }

    def step(self, losses: Iterable[torch.Tensor]) -> float:
        """Go one step down the sum of the losses, which it returns; each is drawn after the
        one before was followed back, so that they need not fit into memory together.
        """
        self._optimizer.zero_grad()
        total = 0.0
        for loss in losses:
            torch.autograd.backward(loss)
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self._taught, 1.0)
        self._optimizer.step()
        self._schedule.step()
        return total

    def keep(self, file: Path, beside: Mapping[str, object]) -> None:
        """Write what is needed to go on, and what stands `beside` it."""
        state = {name: part.state_dict() for name, part in self._parts.items()}
        content = io.BytesIO()
        torch.save({**state, **beside}, content)
        write_file(file, content.getvalue())

    def go_on(self, file: Path, recipe: Json | None = None) -> Json | None:
        """Take up what `keep` wrote, and return what stood beside it; None, and nothing
        taken up, where no file lies or its "recipe" is not the given one.
        """
        if not file.is_file():
            return None
        kept: Json = torch.load(file, weights_only=True)
        if recipe is not None and kept["recipe"] != recipe:
            return None
        for name, part in self._parts.items():
            part.load_state_dict(kept.pop(name))
        return kept
