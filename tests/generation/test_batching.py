"""Prompts in batches: each once, nested ones together."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.generation.batching import QueryPrompt, make_batches


class Asks:
    """What `make_batches` wants to know of a generator."""

    def __init__(self, *, batched: bool, shares_prefixes: bool) -> None:
        self.batched, self.shares_prefixes = batched, shares_prefixes


def owned(tmp_path: Path, owners: int) -> dict[str, QueryPrompt]:
    """For each owner zero-shot and two curves of k = 1 to 4 with other first pictures."""
    asked = {}
    for owner in range(owners):
        pictures = [ImageFile(tmp_path / f"{owner}-{i}.png") for i in range(5)]
        asked[f"{owner} none"] = QueryPrompt(str(owner), worded("no_image", "What?"))
        for draw in (0, 1):
            for k in (1, 2, 3, 4):
                prompt = worded("several_images", "What?", pictures[draw : draw + k])
                asked[f"{owner} {draw} {k}"] = QueryPrompt(str(owner), prompt)
    return asked


@given(
    owners=st.integers(1, 20),
    size=st.integers(1, 12),
    batched=st.booleans(),
    shares_prefixes=st.booleans(),
)
def test_every_prompt_is_asked_once_in_batches_of_at_most_their_size(
    owners: int, size: int, batched: bool, shares_prefixes: bool
) -> None:
    asked = owned(Path("somewhere"), owners)
    parts = list(make_batches(asked, size, Asks(batched=batched, shares_prefixes=shares_prefixes)))
    assert sorted(key for part in parts for key in part) == sorted(asked)
    assert all(0 < len(part) <= size for part in parts)


def test_nested_prompts_are_in_one_batch_where_they_are_read_together() -> None:
    parts = list(make_batches(owned(Path("x"), 3), 9, Asks(batched=True, shares_prefixes=True)))
    for owner in range(3):
        for draw in (0, 1):
            curve = {f"{owner} {draw} {k}" for k in (1, 2, 3, 4)}
            assert any(curve <= set(part) for part in parts)


def test_a_server_is_asked_about_the_longest_first() -> None:
    parts = list(make_batches(owned(Path("x"), 2), 1, Asks(batched=False, shares_prefixes=False)))
    assert [key.split()[-1] for (key,) in parts] == [*"4444333322221111", "none", "none"]
