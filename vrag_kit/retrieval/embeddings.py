"""Document vectors of a corpus, read from disk on demand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.names import StringIndex
from vrag_kit.retrieval.vectors import VectorLocations, Vectors


class Embeddings(Vectors):
    """Vectors of a corpus; only ids and vector locations are in memory."""

    def __init__(
        self, folder: Path, doc_ids: StringIndex, places: VectorLocations, dim: int
    ) -> None:
        """`doc_ids` are in corpus order, `places` locates each vector in `folder`, `dim` is its
        number of components. Raises `VragError` when two documents have the same id.
        """
        super().__init__(folder, places, dim)
        self._ids = doc_ids
        again = np.flatnonzero(doc_ids.first_positions() != np.arange(len(doc_ids)))
        if len(again):
            twice = doc_ids.take(again[:1])[0]
            raise VragError(f"two documents are called {twice!r}. Give each its own `doc_id`.")

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """Ids of all documents, in corpus order."""
        return tuple(self._ids)

    def doc_ids_at(self, positions: np.ndarray) -> list[str]:
        """Returns the ids of the documents at some positions in the corpus."""
        return self._ids.take(positions)

    def positions(self, doc_ids: Sequence[str]) -> np.ndarray:
        """Returns the position of each document in the corpus, int64, shape (n,).

        Raises `VragError` for a document that was not embedded.
        """
        found = self._ids.get_indexer(doc_ids)
        if len(missing := np.flatnonzero(found < 0)):
            raise VragError(
                f"{len(missing)} documents were not embedded, the first is"
                f" {doc_ids[missing[0]]!r}. Embed the whole corpus first."
            )
        return found

    def vectors(self, doc_ids: Sequence[str]) -> np.ndarray:
        """Returns the vectors of documents, float32, shape (n, d), in the order of `doc_ids`.

        Raises `VragError` for a document that was not embedded, and for a file that cannot be read.
        """
        return self.rows(self.positions(doc_ids))

    def __repr__(self) -> str:
        return f"Embeddings({len(self):,} documents in {self.folder.name})"
