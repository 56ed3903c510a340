"""Vectors of a corpus, read from disk when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.names import Names
from vrag_kit.retrieval.vectors import Places, Vectors


class Embeddings(Vectors):
    """Vectors of a corpus: in memory are ids and places."""

    def __init__(self, folder: Path, doc_ids: Names, places: Places, dim: int) -> None:
        """`doc_ids`: in the order of the corpus; `places`: where in `folder` the vector of
        each is; `dim`: its number of components. Raises `VragError` where two have the
        same id.
        """
        super().__init__(folder, places, dim)
        self._ids = doc_ids
        again = np.flatnonzero(doc_ids.firsts() != np.arange(len(doc_ids)))
        if len(again):
            twice = doc_ids.at(again[:1])[0]
            raise VragError(f"two documents are called {twice!r}. Give each its own `doc_id`.")

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """All documents."""
        return tuple(self._ids)

    def names(self, positions: np.ndarray) -> list[str]:
        """The documents at some positions in the corpus."""
        return self._ids.at(positions)

    def positions(self, doc_ids: Sequence[str]) -> np.ndarray:
        """Where documents are in the corpus, int64, shape (n,).

        Raises `VragError` for a document that was not embedded.
        """
        found = self._ids.numbers(doc_ids)
        if len(missing := np.flatnonzero(found < 0)):
            raise VragError(
                f"{len(missing)} documents were not embedded, the first is"
                f" {doc_ids[missing[0]]!r}. Embed the whole corpus first."
            )
        return found

    def vectors(self, doc_ids: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d), in the order of `doc_ids`.

        Raises `VragError` for a document that was not embedded, and for a file that
        cannot be read.
        """
        return self.rows(self.positions(doc_ids))

    def __repr__(self) -> str:
        return f"Embeddings({len(self):,} documents in {self.folder.name})"
