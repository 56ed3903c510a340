"""Where a pair of texts is among millions of pairs, in 24 bytes for each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Spreads the second hash over all bits."""


def hashes(texts: Iterable[str]) -> np.ndarray:
    """A number for each text, uint64, shape (n,); the same in every process."""
    found: np.ndarray = pd.util.hash_array(np.array(list(texts), dtype=object), categorize=False)
    return found


class Lookup:
    """Finds pairs by their hashes: two columns of 64 bits, both of which must agree.

    Of 5 million documents, two have the same 128 bits once in 10²⁵ corpora.
    """

    def __init__(
        self, first: np.ndarray, second: np.ndarray, positions: np.ndarray | None = None
    ) -> None:
        """`first`, `second`: uint64, shape (n,); `positions`: what is found of each, by
        default its number. Of pairs that are there twice, the last is found.
        """
        mixed = _mixed(first, second)
        order = np.argsort(mixed, kind="stable")
        self._mixed = mixed[order]
        self._first = first[order]
        self._places = order if positions is None else positions[order]

    def find(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The position of each pair, int64, shape (m,); −1 for one that is not there."""
        if not len(self._mixed):
            return np.full(len(first), -1)
        at = np.searchsorted(self._mixed, mixed := _mixed(first, second), side="right") - 1
        same = (self._mixed[at] == mixed) & (self._first[at] == first)
        return np.where(same, self._places[at], -1)


def _mixed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    mixed: np.ndarray = first ^ (second * _ODD)
    return mixed
