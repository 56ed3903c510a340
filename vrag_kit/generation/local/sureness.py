"""How probable a model holds the words that it says, noted while it decodes greedily."""

from __future__ import annotations

import math

import torch


class Sureness:
    """Listens to a greedy decoding as a processor of logits that changes none."""

    def __init__(self) -> None:
        self._steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Note how probable the token is that greedy decoding takes next: of `scores`,
        shape (prompts, tokens), the highest.
        """
        self._steps.append(scores.float().log_softmax(dim=-1).amax(dim=-1).cpu())
        return scores

    def probability(self, row: int, length: int) -> float:
        """Of the first `length` tokens of a reply together, in [0, 1], six digits."""
        return round(math.exp(sum(float(step[row]) for step in self._steps[:length])), 6)
