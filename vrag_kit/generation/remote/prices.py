"""`Prices`: what an endpoint's tokens cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens."""

    prompt: float
    answer: float
    cached: float
    """Of a prompt's tokens that the endpoint had in its cache, as it says itself."""

    @classmethod
    def of(cls, told: Sequence[float]) -> Prices:
        """From two or three numbers: prompt, answer, and cached where that differs."""
        cached = told[2] if len(told) > 2 else told[0]
        return cls(told[0], told[1], cached)

    def cost(self, tokens: Mapping[str, int]) -> float:
        """US dollars for tokens of a `prompt`, of which some were `cached`, and of a
        `completion`; what is not named is 0.
        """
        cached = min(tokens.get("cached", 0), tokens.get("prompt", 0))
        new = tokens.get("prompt", 0) - cached
        answer = tokens.get("completion", 0)
        return (self.prompt * new + self.cached * cached + self.answer * answer) / 1e6

    def told(self, likely: float, most: float, max_cost: float | None) -> str:
        """What a forecast says of money, behind "about"."""
        stops = "no max_cost stops it" if max_cost is None else f"stops at max_cost {max_cost:g}"
        return (
            f"{likely:,.2f} US dollars at {self};"
            f" {most:,.2f} if all answers were as long as they may be; {stops}"
        )

    def __str__(self) -> str:
        words = f"{self.prompt:g} for a million tokens of prompt and {self.answer:g} of answer"
        if self.cached == self.prompt:
            return words
        return f"{words} ({self.cached:g} of prompt in its cache, of which none is expected here)"
