"""Prefix caching: the shared prefix of prompts is computed once, and each continues from it.

1-in-k and top-k are nested: the prompt of k = 3 is the beginning of that of k = 20, except for its
last few tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile

import torch
from transformers import DynamicCache

from vrag_kit.checkpoints import LibraryObject
from vrag_kit.generation.local.processors import Inputs

_IMAGE_INPUTS = ("pixel_values", "mm_encoder_outputs")
"""Images, which the cache holds already. Phi-4's inputs stay: it drops its cache when an answer
grows past the short context, and encodes its images again.
"""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The tokens and images of one prompt of a batch."""

    ids: tuple[int, ...]
    """Its token ids, without padding."""
    images: tuple[str, ...]
    """Keys of its images, in order."""


@dataclass(frozen=True, slots=True)
class PrefixPlan:
    """Which rows of a batch share a prefix."""

    chains: list[list[int]]
    """Numbers of rows, the longest first: the others begin with its prefix."""
    apart: list[int]
    """Rows that share no prefix."""
    tail: int
    """Tokens at the end of each nested row that are not shared."""

    @property
    def rows(self) -> list[int]:
        """The nested rows, chain by chain."""
        return list(chain.from_iterable(self.chains))


def plan_prefixes(rows: Sequence[TokenRow], image_token: int | None) -> PrefixPlan:
    """Find rows that are, except for their last tokens, the prefix of a longer one.

    A row's images are the first of the longer one's. It is nested only if at least half of it is
    shared, if it is longer than the tail, and if none of its own last tokens stands for an image.
    """
    chains: list[list[int]] = []
    tail = 0
    for number in sorted(range(len(rows)), key=lambda each: -len(rows[each].ids)):
        row = rows[number]
        for numbers in chains:
            own = _tail(row, rows[numbers[0]], image_token)
            if own is not None:
                numbers.append(number)
                tail = max(tail, own)
                break
        else:
            chains.append([number])
    kept = []
    for numbers in chains:
        # a prefix, without the last tokens, has all images of its row
        ids = {each: rows[each].ids for each in numbers if len(rows[each].ids) > tail}
        fits = [each for each in ids if image_token not in ids[each][-tail:]]
        if len(fits) > 1 and fits[0] == numbers[0]:
            kept.append(fits)
    together = set(chain.from_iterable(kept))
    return PrefixPlan(kept, [each for each in range(len(rows)) if each not in together], tail)


def _tail(row: TokenRow, longer: TokenRow, image_token: int | None) -> int | None:
    """How many of a row's last tokens are not shared, at least one; None if it is not nested in the
    longer row.
    """
    if row.images != longer.images[: len(row.images)]:
        return None
    pairs = zip(row.ids[:-1], longer.ids, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    own = row.ids[shared:]
    if image_token in own or 2 * len(own) > len(row.ids):
        return None
    return len(own)


def fork_kv_cache(
    model: LibraryObject, inputs: Inputs, longest: Inputs, plan: PrefixPlan
) -> Inputs:
    """Return `inputs` of a plan's rows with a key-value cache of their shared prefixes. `generate`
    continues from it. `longest` are the inputs of each chain's longest row.
    """
    width = longest["input_ids"].shape[1]
    prefixes = {
        name: value[:, : width - plan.tail] if _is_per_token(value, width) else value
        for name, value in longest.items()
    }
    cache = DynamicCache()
    _reset_positions(model)
    # not the model's forward alone: `generate` knows each family's positions beside padding
    model.generate(**prefixes, past_key_values=cache, max_new_tokens=1, do_sample=False)
    _reset_positions(model)
    padding = (width - longest["attention_mask"].sum(dim=1)).tolist()
    lengths = iter((inputs["attention_mask"].sum(dim=1) - plan.tail).tolist())
    cuts = []
    for row, numbers in enumerate(plan.chains):
        start = padding[row]
        cuts += [(row, start, start + length) for length in islice(lengths, len(numbers))]
    forked = DynamicCache()
    for number, layer in enumerate(cache.layers):
        states: LibraryObject = layer  # layers of another kind have no keys and values
        forked.update(_padded(states.keys, cuts), _padded(states.values, cuts), number)
    rest = {name: value for name, value in inputs.items() if name not in _IMAGE_INPUTS}
    return {**rest, "past_key_values": forked}


def _is_per_token(value: object, width: int) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 2 and value.shape[1] == width


def _padded(states: torch.Tensor, cuts: Sequence[tuple[int, int, int]]) -> torch.Tensor:
    """Cuts (row, start, end) of states (rows × heads × tokens × size), with zeros on the left."""
    width = max(end - start for _, start, end in cuts)
    padded = states.new_zeros(len(cuts), states.shape[1], width, states.shape[3])
    for number, (row, start, end) in enumerate(cuts):
        padded[number, :, width - (end - start) :] = states[row, :, start:end]
    return padded


def _reset_positions(model: LibraryObject) -> None:
    """Qwen keeps how far images shifted the positions of its last batch, and would apply that to
    the next batch when it continues from a cache.
    """
    for part in model.modules():
        if getattr(part, "rope_deltas", None) is not None:
            part.rope_deltas = None
