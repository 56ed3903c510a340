"""Vectors on disk, read in blocks; none of them stays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.retrieval.shards import open_vectors

PIECE = 1 << 26
"""Maximum number of bytes of vectors that are read at once."""
_OPEN = 16
"""Shards held open at most: there may be more than a process may hold open."""


@dataclass(frozen=True)
class VectorLocations:
    """Locations of vectors by shard and row, in 8 bytes for each."""

    shards: tuple[str, ...]
    shard: np.ndarray
    """Shard number of each vector, int32, shape (n,)."""
    row: np.ndarray
    """Row of each vector in its shard, int32, shape (n,)."""

    def take(self, positions: np.ndarray) -> VectorLocations:
        """Returns the locations at some positions, in that order."""
        return VectorLocations(self.shards, self.shard[positions], self.row[positions])


class Vectors:
    """Vectors of a folder, accessed by position."""

    def __init__(self, folder: Path, places: VectorLocations, dim: int) -> None:
        """`places` locates each vector in `folder`; `dim` is its number of components."""
        self.folder = folder
        self.dim = dim
        self._places = places
        self._opened = lru_cache(_OPEN)(self._open)

    def __len__(self) -> int:
        return len(self._places.row)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Returns the vectors at some positions, float32, shape (n, d). Consecutive rows of one
        shard are returned as they are on disk.

        Raises `VragError` for a file that cannot be read.
        """
        places = self._places.take(positions)
        if len(positions) and (places.shard == places.shard[0]).all():
            return self._opened(int(places.shard[0]))[_shorter(places.row)]
        found = np.empty((len(positions), self.dim), np.float32)
        order = np.argsort(places.shard, kind="stable")
        cuts = np.flatnonzero(np.diff(places.shard[order])) + 1
        for run in np.split(order, cuts) if len(order) else []:
            shard = self._opened(int(places.shard[run[0]]))
            found[_shorter(run)] = shard[_shorter(places.row[run])]
        return found

    def iter_blocks(
        self, positions: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields (positions, vectors) of all vectors, or of some positions, in disk order. Each
        block has at most `PIECE` bytes.
        """
        wanted = np.arange(len(self)) if positions is None else positions
        places = self._places.take(wanted)
        ordered = wanted[np.lexsort((places.row, places.shard))]
        size = max(1, PIECE // (4 * max(1, self.dim)))
        for start in range(0, len(ordered), size):
            piece = ordered[start : start + size]
            yield piece, self.rows(piece)

    def _open(self, shard: int) -> np.ndarray:
        name = self._places.shards[shard]
        try:
            return open_vectors(self.folder, name)
        except (OSError, ValueError) as error:
            raise VragError(
                f"{self.folder / name}.npy: the embeddings cannot be read ({error}). Search again,"
                " which looks at each shard anew."
            ) from error


def _shorter(numbers: np.ndarray) -> slice | np.ndarray:
    """The same as a slice, where each is one more than the one before."""
    first = int(numbers[0])
    last = first + len(numbers)
    return slice(first, last) if (numbers == np.arange(first, last)).all() else numbers
