"""What asking an endpoint takes, before the first call: tokens, money and hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from vrag_kit.benchmarks.images import shrunk
from vrag_kit.generation.generator import Forecast, Size, all_images, text_of
from vrag_kit.generation.remote.endpoints import Endpoint, image_tokens
from vrag_kit.generation.remote.shared import shared_tokens
from vrag_kit.progress import duration
from vrag_kit.types import LazyImage, Prompt

EXPECTED = 64
"""Tokens of an answer, as forecasts count them."""
SECONDS = 5
"""That a call is taken to last, in forecasts."""
_WORDS_ALONE = (
    "tokens are those of the words alone: how this endpoint counts pictures is not known here"
)
_NO_PRICE = (
    "no price is known for this model: nothing is said about money, and no max_cost stops it."
    " Add `prices` to its entry"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """How an endpoint is called; answers do not depend on it."""

    concurrency: int = 8
    """Calls at once."""
    timeout: float = 300.0
    """Seconds until a whole answer must be there."""
    retries: int = 4
    """Attempts after the first."""
    max_cost: float | None = None
    """US dollars; None for no cap."""


def endpoint_forecast(
    prompts: Sequence[Prompt],
    sizes: Mapping[str, Size],
    endpoint: Endpoint,
    *,
    limit: int,
    calling: Calling,
    max_image_side: int | None,
) -> Forecast:
    """Calls, images, tokens (pictures by the endpoint's rule, words at four letters a
    token; of an answer `EXPECTED` and what is thought, at most `limit`), hours if a call
    takes `SECONDS`, and, where prices are known, what this may cost.
    """
    tokens_of = partial(_tokens_of, rule=endpoint.image_tokens, sizes=sizes, side=max_image_side)
    images = list(all_images(prompts))
    tokens = sum(len(text_of(prompt)) // 4 + 8 for prompt in prompts) + sum(map(tokens_of, images))
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
        notes.append(f"{word} {endpoint.prices.told(cost, most, calling.max_cost)}")
        shared = shared_tokens(prompts, tokens_of)
        least = endpoint.prices.cost({**likely, "cached": shared})
        if least < cost:
            notes.append(f"{least:,.2f} if the provider caches what prompts share")
    elif endpoint.key:
        notes.append(_NO_PRICE)
        uncounted = "calls"
    about = f"about {duration(3600 * hours)} if a call takes {SECONDS} seconds"
    notes.append(f"{about}, {calling.concurrency} at once")
    counts = {"calls": len(prompts), "images": len(images), "tokens": tokens}
    return Forecast(
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
    return image_tokens(rule, shrunk(sizes[part.where], side)) if rule else 0
