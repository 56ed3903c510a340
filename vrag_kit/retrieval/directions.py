"""Validation of embeddings: only finite, non-zero vectors are stored or searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders import Encoder


def validate_embeddings(vectors: np.ndarray, names: Sequence[str], encoder: Encoder) -> None:
    """Raise `VragError` naming the first document or query whose vector is NaN,
    infinite, zero, or not of unit length where it should be.
    """
    if vectors.shape[0] != len(names) or vectors.dtype != np.float32:
        raise VragError(
            f"{encoder.name} returned {vectors.shape} {vectors.dtype} for {len(names)} inputs;"
            " expected float32 with one row each."
        )
    if (wrong := find_invalid_rows(vectors, encoder.normalized)) is not None:
        raise VragError(
            f"{encoder.name}: the embedding of {names[wrong.row]!r} has {wrong} in this batch."
            " Half precision can overflow: try float32; else look at the picture or text."
        )


class InvalidRows(NamedTuple):
    """Rows that are not valid embeddings."""

    row: int
    """Position of the first invalid row; `length` is its length."""
    length: float
    expected: str
    rows: int

    def __str__(self) -> str:
        return f"length {self.length:.4g}, expected {self.expected} ({self.rows:,} such rows)"


def find_invalid_rows(vectors: np.ndarray, normalized: bool) -> InvalidRows | None:
    """Find rows that are NaN, infinite, zero or, if `normalized`, not of unit length."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    wrong = ~np.isfinite(lengths) | (lengths == 0)
    if normalized:
        wrong |= np.abs(lengths - 1) > 1e-3
    if not wrong.any():
        return None
    first = int(np.argmax(wrong))
    expected = "1" if normalized else "a finite number above 0"
    return InvalidRows(first, float(lengths[first]), expected, int(wrong.sum()))
