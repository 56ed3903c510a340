"""Prompts in batches: each once, nested ones together."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.generation.batching import QueryPrompt, make_batches


def prompts_of(owners: int) -> dict[str, QueryPrompt]:
    """For each owner zero-shot and two curves of k = 1 to 4 with other first pictures."""
    prompts = {}
    for owner in range(owners):
        pictures = [ImageFile(Path(f"{owner}-{i}.png")) for i in range(5)]
        prompts[f"{owner} none 0"] = QueryPrompt(str(owner), worded("no_image", "What?"))
        for draw in (0, 1):
            for k in (1, 2, 3, 4):
                prompt = worded("several_images", "What?", pictures[draw : draw + k])
                prompts[f"{owner} {draw} {k}"] = QueryPrompt(str(owner), prompt)
    return prompts


@given(st.integers(1, 20), st.integers(1, 12), st.booleans(), st.booleans())
def test_every_prompt_is_in_one_batch_of_at_most_the_size(
    owners: int, size: int, batched: bool, shares_prefixes: bool
) -> None:
    model = SimpleNamespace(batched=batched, shares_prefixes=shares_prefixes)
    batches = list(make_batches(prompts_of(owners), size, model))
    assert sorted(chain.from_iterable(batches)) == sorted(prompts_of(owners))
    assert all(0 < len(batch) <= size for batch in batches)


def test_nested_prompts_share_a_batch_and_a_server_is_asked_about_the_longest_first() -> None:
    sharing = SimpleNamespace(batched=True, shares_prefixes=True)
    batches = list(make_batches(prompts_of(3), 9, sharing))
    for curve in ("0 0", "0 1", "1 0", "1 1", "2 0", "2 1"):
        nested = {f"{curve} {k}" for k in (1, 2, 3, 4)}
        assert any(nested <= set(batch) for batch in batches)
    server = SimpleNamespace(batched=False, shares_prefixes=False)
    served = make_batches(prompts_of(2), 1, server)
    assert "".join(key.split()[-1] for (key,) in served) == "444433332222111100"
