"""`batches`: in which order prompts are asked, and which of them together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from vrag_kit.generation.generator import Generator, images_of, text_of
from vrag_kit.types import Prompt

_BLOCK = 16
"""Owners whose prompts are asked one after the other, so that their pictures recur while
they are remembered; more where a batch is larger.
"""
_ALIKE = 1_000
"""Characters by which prompts of one batch may differ with little padding."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Owned:
    """A prompt and whose it is."""

    owner: str
    prompt: Prompt

    @property
    def load(self) -> tuple[int, int]:
        """Its pictures, and about how many words."""
        return len(images_of(self.prompt)), len(text_of(self.prompt)) // _ALIKE


def batches(asked: Mapping[Key, Owned], size: int, generator: Generator) -> Iterator[Sequence[Key]]:
    """Keys of prompts in batches of at most `size`, those of a few owners at a time.

    Where prompts are read together that are nested (see `Generator.nests`), those are
    in one batch; else those with as many pictures and about as many words, with little
    padding. A model that is asked about each alone is asked about the longest first:
    what nested prompts share is then in its server's cache when the shorter ones come.
    """
    owners = {owner: place for place, owner in enumerate(dict.fromkeys(_owners(asked)))}

    def block_of(key: Key) -> int:
        return owners[asked[key].owner] // max(_BLOCK, size)

    for _, part in groupby(sorted(asked, key=block_of), key=block_of):
        together = sorted(part, key=lambda key: asked[key].load, reverse=not generator.batched)
        if getattr(generator, "nests", False) and size > 1:
            yield from _packed(_chains(together, asked), size)
        else:
            yield from (together[at : at + size] for at in range(0, len(together), size))


def _owners(asked: Mapping[Key, Owned]) -> Iterator[str]:
    return (each.owner for each in asked.values())


def _chains(keys: Sequence[Key], asked: Mapping[Key, Owned]) -> list[list[Key]]:
    """`keys` so that prompts stand together, longest first, of which each is nested in
    the first; in the order of the first ones' loads.
    """
    chains: dict[Key, list[Key]] = {}
    alike: dict[tuple[str, str], list[Key]] = {}
    for key in reversed(keys):
        prompt = asked[key].prompt
        images = images_of(prompt)
        longer = alike.setdefault((asked[key].owner, text_of(prompt)), [])
        for first in longer:
            if images and images_of(asked[first].prompt)[: len(images)] == images:
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
