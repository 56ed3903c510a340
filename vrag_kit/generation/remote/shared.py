"""Count the prompt tokens that an endpoint may cache, because prompts share prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vrag_kit.types import LazyImage, Prompt


def cached_prompt_tokens(
    prompts: Iterable[Prompt], tokens_of: Callable[[str | LazyImage], int]
) -> int:
    """Return the prompt tokens that an endpoint can read from its cache at most. They are the texts
    and images of prefixes that prompts share, counted once less than they occur: of 1-in-3 and
    1-in-5 all images of the first. This holds for any order of calls.
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
