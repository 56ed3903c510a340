"""Record the probability that a model assigns to its own text, in greedy decoding."""

from __future__ import annotations

import math

import torch


class SequenceProbability:
    """A logits processor that records token probabilities and changes no logits."""

    def __init__(self) -> None:
        self._steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Record the log probability of the next greedy token: of `scores`, the highest. `scores`
        has the shape (prompts, tokens).
        """
        self._steps.append(scores.float().log_softmax(dim=-1).amax(dim=-1).cpu())
        return scores

    def probability(self, row: int, length: int) -> float:
        """Return the probability of a reply's first `length` tokens, in [0, 1], to six decimals."""
        return round(math.exp(sum(float(step[row]) for step in self._steps[:length])), 6)
