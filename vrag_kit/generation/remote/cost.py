"""Cost of endpoint calls: prices of tokens, and an estimate before the first call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from vrag_kit.generation.generators import CostEstimate, Size, iter_images, prompt_text
from vrag_kit.generation.remote.providers import Endpoint
from vrag_kit.types import Prompt

ANSWER_TOKENS = 64
"""Tokens of an answer that estimates assume."""
CALL_SECONDS = 5
"""Seconds per call that estimates assume."""


class Prices(NamedTuple):
    """Token prices, in US dollars per million tokens."""

    prompt: float
    answer: float
    cached: float | None = None
    """Price of prompt tokens that the endpoint reports as cached; None if it is `prompt`."""

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the US dollars for `prompt` tokens, some of them `cached`, and `completion`
        tokens. Missing counts are 0.
        """
        prompt = tokens.get("prompt", 0)
        cached = 0 if self.cached is None else min(tokens.get("cached", 0), prompt)
        cost = self.prompt * (prompt - cached) + (self.cached or 0) * cached
        return (cost + self.answer * tokens.get("completion", 0)) / 1e6


def estimate_endpoint_cost(
    prompts: Sequence[Prompt],
    sizes: Mapping[str, Size],
    endpoint: Endpoint,
    *,
    max_tokens: int,
    concurrency: int,
    max_cost: float | None,
) -> CostEstimate:
    """Estimate calls, images, tokens, hours and, if prices are known, cost. `sizes` has the size of
    every image as it is sent, by its `where`. Images are counted by the endpoint's rule, text at
    four characters a token; an answer takes `ANSWER_TOKENS` and the expected reasoning tokens, at
    most `max_tokens`; a call takes `CALL_SECONDS`.
    """
    images = list(iter_images(prompts))
    calls = len(prompts)
    prompt_tokens = sum(len(prompt_text(prompt)) // 4 + 8 for prompt in prompts)
    notes = []
    uncounted = ""
    if endpoint.image_tokens is not None:
        rule = endpoint.image_tokens
        prompt_tokens += sum(image_tokens(rule, sizes[image.where]) for image in images)
    elif images:
        notes.append("tokens are those of the text alone: no rule for images is known here")
        uncounted = "pictures"
    answer_tokens = calls * min(max_tokens, ANSWER_TOKENS + endpoint.expected_reasoning_tokens)
    cost = None
    if endpoint.prices is not None:
        prices = Prices(*endpoint.prices)
        cost = prices.cost({"prompt": prompt_tokens, "completion": answer_tokens})
        most = prices.cost({"prompt": prompt_tokens, "completion": calls * max_tokens})
        about = "at least" if uncounted else "about"
        notes.append(
            f"{about} {cost:,.2f} US dollars at {prices.prompt:g} for a million tokens of prompt"
            f" and {prices.answer:g} of answer; {most:,.2f} if every answer reaches the limit;"
            f" max_cost is {max_cost}"
        )
    elif endpoint.key:
        notes.append("no price is known for this model: add `prices` to its entry for a cap")
        uncounted = "calls"
    hours = calls * CALL_SECONDS / concurrency / 3600
    notes.append(f"about {hours:.2f} hours if a call takes {CALL_SECONDS} s, {concurrency} at once")
    estimate = CostEstimate(
        calls=calls, images=len(images), tokens=prompt_tokens, answer_tokens=answer_tokens
    )
    return replace(estimate, notes=tuple(notes), cost=cost, uncounted=uncounted, hours=hours)


def image_tokens(rule: str, size: Size) -> int:
    """Return the tokens that an endpoint counts for an image, by its published rule. For estimates
    only.
    """
    width, height = size
    short = min(size)
    if rule == "tiles of 512":  # in 2048 × 2048, with a short side of at most 768
        scale = min(1.0, 2048 / max(size))
        scale *= min(1.0, 768 / (short * scale))
        columns = math.ceil(round(width * scale) / 512)
        return 85 + 170 * columns * math.ceil(round(height * scale) / 512)
    if rule == "tiles of 768":  # of two thirds of the short side, from 256 to 768
        side = min(768, max(256, int(short / 1.5)))
        tiles = math.ceil(width / side) * math.ceil(height / side)
        return 258 * (1 if max(size) <= 384 else tiles)
    # one for 750 pixels, of at most 1.2 million and a side of 1568
    scale = min(1.0, 1568 / max(size), math.sqrt(1_200_000 / (width * height)))
    return int(width * height * scale * scale) // 750 + 1
