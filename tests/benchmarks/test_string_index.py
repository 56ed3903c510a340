"""Names in columns are a list of texts and a dictionary of their numbers, in less memory."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

from vrag_kit.benchmarks.string_index import StringIndex
from vrag_kit.types import LazyMapping

WORDS = ["", "a", "b.jpg", "ä/ö ü.png", "/", "a/", "/a", "a/b", "a//b", "x/y/z", "\udcff/\udc80"]


@pytest.mark.parametrize("count", [0, 1, 10, 10_000])
def test_names_are_found_by_number_and_by_name(count: int) -> None:
    drawn = random.Random(count)
    given = [f"{drawn.choice(WORDS)}{drawn.choice(WORDS)}{n % 100}" for n in range(count)]
    names = StringIndex(iter(given))
    assert list(names) == given
    assert len(names) == count
    some = [drawn.randrange(count) for _ in range(5)] if count else []
    assert names.take(np.array(some, int)) == [given[each] for each in some]
    asked = [*given, "elsewhere", ""]
    first = {name: given.index(name) for name in set(given)}
    assert names.get_indexer(asked).tolist() == [first.get(name, -1) for name in asked]
    assert [name in names for name in asked] == [name in first for name in asked]
    assert None not in names
    once, numbers = names.unique()
    assert list(once) == list(dict.fromkeys(given))
    assert once.take(numbers) == given


def test_names_are_the_same_in_another_process() -> None:
    """There the hashes of texts are others."""
    there = (
        "import pickle, sys; made = pickle.load(sys.stdin.buffer); print('c/7' in made, len(made))"
    )
    names = StringIndex(f"c/{number}" for number in range(1000))
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", there],
            input=pickle.dumps(names),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        assert done.stdout.split() == [b"True", b"1000"]


def test_what_is_made_is_a_mapping_and_only_the_last_are_kept() -> None:
    made: list[str] = []

    def double(name: str) -> str:
        made.append(name)
        return 2 * name

    names = [str(number) for number in range(2000)]
    doubles = LazyMapping(StringIndex(names), double)
    assert doubles == {name: 2 * name for name in names}
    assert doubles.get("x") is None
    made.clear()
    assert [doubles["1999"], doubles["0"], doubles["0"]] == ["19991999", "00", "00"]
    assert made == ["0"]
