"""`make_batches`: orders prompts and groups them into batches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from vrag_kit.generation.generators import Generator, prompt_images, prompt_text
from vrag_kit.types import Prompt

_BLOCK = 16
"""Owners whose prompts are asked one after the other, so that their pictures recur while
they are remembered; more where a batch is larger.
"""
_ALIKE = 1_000
"""Characters by which prompts of one batch may differ with little padding."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QueryPrompt:
    """A prompt and its owner, such as a query id."""

    owner: str
    prompt: Prompt

    @property
    def load(self) -> tuple[int, int]:
        """Number of images, and text length in thousands of characters."""
        return len(prompt_images(self.prompt)), len(prompt_text(self.prompt)) // _ALIKE


def make_batches(
    asked: Mapping[Key, QueryPrompt], size: int, generator: Generator
) -> Iterator[Sequence[Key]]:
    """Yield keys of prompts in batches of at most `size`, for a few owners at a time.

    If the generator shares prefixes, nested prompts share a batch; otherwise a batch holds prompts
    of similar size, with little padding. A generator that is not batched gets
    the longest prompts first: their shared prefix is then in the server's cache when shorter ones
    follow.
    """
    distinct = dict.fromkeys(each.owner for each in asked.values())
    places = {owner: place for place, owner in enumerate(distinct)}

    def block_of(key: Key) -> int:
        return places[asked[key].owner] // max(_BLOCK, size)

    for _, part in groupby(sorted(asked, key=block_of), key=block_of):
        together = sorted(part, key=lambda key: asked[key].load, reverse=not generator.batched)
        if generator.shares_prefixes and size > 1:
            yield from _packed(_chains(together, asked), size)
        else:
            yield from (together[at : at + size] for at in range(0, len(together), size))


def _chains(keys: Sequence[Key], asked: Mapping[Key, QueryPrompt]) -> list[list[Key]]:
    """`keys` so that prompts stand together, longest first, of which each is nested in
    the first; in the order of the first ones' loads.
    """
    chains: dict[Key, list[Key]] = {}
    alike: dict[tuple[str, str], list[Key]] = {}
    for key in reversed(keys):
        prompt = asked[key].prompt
        images = prompt_images(prompt)
        longer = alike.setdefault((asked[key].owner, prompt_text(prompt)), [])
        for first in longer:
            if images and prompt_images(asked[first].prompt)[: len(images)] == images:
                chains[first].append(key)
                break
        else:
            chains[key] = [key]
            longer.append(key)
    return list(reversed(chains.values()))


def _packed(chains: Sequence[list[Key]], size: int) -> Iterator[Sequence[Key]]:
    """Whole chains in batches of at most `size`; a longer one is cut."""
    batch: list[Key] = []
    for chain in chains:
        if len(batch) + len(chain) > size and batch:
            yield batch
            batch = []
        batch += chain
        while len(batch) > size:
            yield batch[:size]
            batch = batch[size:]
    if batch:
        yield batch
