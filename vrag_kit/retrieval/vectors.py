"""Vectors on disk, read in blocks; none of them stays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.retrieval.shards import open_vectors

PIECE = 8192
"""Rows that are read at once at most: 24 MB of 768 components."""
_OPEN = 16
"""Shards held open at most: there may be more than a process may hold open."""


@dataclass(frozen=True)
class Places:
    """Where vectors are, in 8 bytes for each."""

    shards: tuple[str, ...]
    shard: np.ndarray
    """Number of the shard of each, int32, shape (n,)."""
    row: np.ndarray
    """Its row there, int32, shape (n,)."""

    def of(self, positions: np.ndarray) -> Places:
        """Those at some positions, in that order."""
        return Places(self.shards, self.shard[positions], self.row[positions])


class Vectors:
    """Vectors of a folder, by their positions in some order."""

    def __init__(self, folder: Path, places: Places, dim: int) -> None:
        """`places`: where in `folder` each is; `dim`: its number of components."""
        self.folder = folder
        self.dim = dim
        self._places = places
        self._opened = lru_cache(_OPEN)(self._open)

    def __len__(self) -> int:
        return len(self._places.row)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """The vectors at some positions, float32, shape (n, d); where they lie side by
        side in one shard, as they are on disk.

        Raises `VragError` for a file that cannot be read.
        """
        places = self._places.of(positions)
        if len(positions) and (side_by_side := _slice(places)):
            return self._opened(int(places.shard[0]))[side_by_side]
        found = np.empty((len(positions), self.dim), np.float32)
        for shard in np.unique(places.shard).tolist():
            here = np.flatnonzero(places.shard == shard)
            found[here] = self._opened(shard)[places.row[here]]
        return found

    def pieces(
        self, positions: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(positions, vectors) of all, or of those at some positions, in the order of
        the disk; each from one shard, and of at most `PIECE` rows.
        """
        wanted = np.arange(len(self)) if positions is None else positions
        places = self._places.of(wanted)
        order = np.lexsort((places.row, places.shard))
        cuts = np.flatnonzero(np.diff(places.shard[order])) + 1
        for shard in np.split(wanted[order], cuts):
            for start in range(0, len(shard), PIECE):
                piece = shard[start : start + PIECE]
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


def _slice(places: Places) -> slice | None:
    """The rows as a slice, where they are that of one shard."""
    first = int(places.row[0])
    last = first + len(places.row)
    one_shard = (places.shard == places.shard[0]).all()
    if one_shard and (places.row == np.arange(first, last)).all():
        return slice(first, last)
    return None
