"""`Prices`: the prices of an endpoint's tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Token prices, in US dollars per million tokens."""

    prompt: float
    answer: float
    cached: float
    """Price of prompt tokens that the endpoint reports as cached."""

    @classmethod
    def parse(cls, numbers: Sequence[float]) -> Prices:
        """Return prices from two or three numbers: prompt, answer, and cached if it differs."""
        cached = numbers[2] if len(numbers) > 2 else numbers[0]
        return cls(numbers[0], numbers[1], cached)

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the US dollars for `prompt` tokens, some of them `cached`, and `completion`
        tokens. Missing counts are 0.
        """
        cached = min(tokens.get("cached", 0), tokens.get("prompt", 0))
        new = tokens.get("prompt", 0) - cached
        answer = tokens.get("completion", 0)
        return (self.prompt * new + self.cached * cached + self.answer * answer) / 1e6

    def describe(self, likely: float, most: float, max_cost: float | None) -> str:
        """Return the text of an estimated cost, to follow "about"."""
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
