"""How much of some prompts an endpoint may have read before, as they begin alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vrag_kit.types import LazyImage, Prompt


def shared_tokens(prompts: Iterable[Prompt], tokens_of: Callable[[str | LazyImage], int]) -> int:
    """Tokens of those parts, texts and pictures, with which a prompt begins as another
    one did, counted once less than they occur: of 1-in-3 and 1-in-5 all pictures of the
    first. Whoever asks them in any order reads at most so many from a cache.
    """
    seen: set[int] = set()
    shared = 0
    for prompt in prompts:
        begun = 0
        for message in prompt:
            for part in message.parts:
                what = part if isinstance(part, str) else part.where
                begun = hash((begun, message.role, isinstance(part, str), what))
                shared += tokens_of(part) if begun in seen else 0
                seen.add(begun)
    return shared
