"""Estimate the tokens, money and hours of endpoint calls, before the first call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from vrag_kit.benchmarks.images import shrunk_size
from vrag_kit.generation.generator import CostEstimate, Size, iter_images, prompt_text
from vrag_kit.generation.remote.providers import Endpoint, image_tokens
from vrag_kit.generation.remote.shared import cached_prompt_tokens
from vrag_kit.progress import format_duration
from vrag_kit.types import LazyImage, Prompt

EXPECTED = 64
"""Tokens of an answer that estimates assume."""
SECONDS = 5
"""Seconds per call that estimates assume."""
_WORDS_ALONE = (
    "tokens are those of the words alone: how this endpoint counts pictures is not known here"
)
_NO_PRICE = (
    "no price is known for this model: nothing is said about money, and no max_cost stops it."
    " Add `prices` to its entry"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Options for calling an endpoint; answers do not depend on them."""

    concurrency: int = 8
    """Parallel calls."""
    timeout: float = 300.0
    """Seconds within which a whole answer must arrive."""
    retries: int = 4
    """Retries after the first attempt."""
    max_cost: float | None = None
    """US dollars; None for no cap."""


def estimate_endpoint_cost(
    prompts: Sequence[Prompt],
    sizes: Mapping[str, Size],
    endpoint: Endpoint,
    *,
    limit: int,
    calling: CallOptions,
    max_image_side: int | None,
) -> CostEstimate:
    """Estimate calls, images, tokens, hours and, if prices are known, cost. Images are counted by
    the endpoint's rule, text at four characters a token; an answer takes `EXPECTED` and the
    expected reasoning tokens, at most `limit`; a call takes `SECONDS`.
    """
    tokens_of = partial(_tokens_of, rule=endpoint.image_tokens, sizes=sizes, side=max_image_side)
    images = list(iter_images(prompts))
    tokens = sum(len(prompt_text(prompt)) // 4 + 8 for prompt in prompts) + sum(
        map(tokens_of, images)
    )
    answers = len(prompts) * min(limit, EXPECTED + endpoint.thinking)
    hours = len(prompts) * SECONDS / calling.concurrency / 3600
    cost = None
    notes = []
    uncounted = ""
    if images and not endpoint.image_tokens:
        notes.append(_WORDS_ALONE)
        uncounted = "pictures"
    if endpoint.prices:
        likely = {"prompt": tokens, "completion": answers}
        cost = endpoint.prices.cost(likely)
        most = endpoint.prices.cost({**likely, "completion": len(prompts) * limit})
        word = "at least" if uncounted else "about"
        notes.append(f"{word} {endpoint.prices.describe(cost, most, calling.max_cost)}")
        shared = cached_prompt_tokens(prompts, tokens_of)
        least = endpoint.prices.cost({**likely, "cached": shared})
        if least < cost:
            notes.append(f"{least:,.2f} if the provider caches what prompts share")
    elif endpoint.key:
        notes.append(_NO_PRICE)
        uncounted = "calls"
    about = f"about {format_duration(3600 * hours)} if a call takes {SECONDS} seconds"
    notes.append(f"{about}, {calling.concurrency} at once")
    counts = {"calls": len(prompts), "images": len(images), "tokens": tokens}
    return CostEstimate(
        **counts,
        notes=tuple(notes),
        cost=cost,
        uncounted=uncounted,
        answer_tokens=answers,
        hours=hours,
    )


def _tokens_of(
    part: str | LazyImage, *, rule: str | None, sizes: Mapping[str, Size], side: int | None
) -> int:
    """Tokens of words, or of a picture by the endpoint's rule; 0 of one without a rule."""
    if isinstance(part, str):
        return len(part) // 4
    return image_tokens(rule, shrunk_size(sizes[part.where], side)) if rule else 0
