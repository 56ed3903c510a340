"""A lazy mapping over an index of names."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pandas as pd

from vrag_kit.types import LazyMapping


def test_names_and_what_is_made_of_them_are_the_same_in_another_process() -> None:
    """There the hashes of texts are others."""
    there = (
        "import pickle, sys; made = pickle.load(sys.stdin.buffer); print(made['c/7'], len(made))"
    )
    lengths = LazyMapping(pd.Index([f"c/{number}" for number in range(1000)], dtype=object), len)
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", there],
            input=pickle.dumps(lengths),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        assert done.stdout.split() == [b"3", b"1000"]


def test_what_is_made_is_a_mapping_and_only_the_last_are_kept() -> None:
    made: list[str] = []

    def double(name: str) -> str:
        made.append(name)
        return 2 * name

    names = [str(number) for number in range(2000)]
    doubles = LazyMapping(pd.Index(names, dtype=object), double)
    assert doubles == {name: 2 * name for name in names}
    assert doubles.get("x") is None
    made.clear()
    assert [doubles["1999"], doubles["0"], doubles["0"]] == ["19991999", "00", "00"]
    assert made == ["0"]
