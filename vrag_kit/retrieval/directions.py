"""Vectors that are directions: nothing else is kept or searched by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders import Encoder


def check_vectors(vectors: np.ndarray, names: Sequence[str], encoder: Encoder) -> None:
    """Raise `VragError` naming the first document or query whose vector is NaN,
    infinite, zero, or not of unit length where it should be.
    """
    if vectors.shape[0] != len(names) or vectors.dtype != np.float32:
        raise VragError(
            f"{encoder.name} returned {vectors.shape} {vectors.dtype} for {len(names)} inputs;"
            " expected float32 with one row each."
        )
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = ~np.isfinite(lengths) | (lengths == 0)
    if encoder.normalized:
        wrong |= np.abs(lengths - 1) > 1e-3
    if wrong.any():
        first = int(np.argmax(wrong))
        expected = "1" if encoder.normalized else "a finite number above 0"
        raise VragError(
            f"{encoder.name}: the embedding of {names[first]!r} has length {lengths[first]:.4g},"
            f" expected {expected} ({int(wrong.sum())} such rows in this batch). Half precision can"
            " overflow: try float32; else look at the picture or text."
        )
