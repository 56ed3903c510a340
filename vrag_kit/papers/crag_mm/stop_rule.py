"""The early-stopping rule: a conversation ends after two consecutive turns that are not correct."""

from __future__ import annotations

from collections.abc import Sequence

RIGHT = 1.0
"""Score of a correct turn; a missing one scores 0, an incorrect one −1 (section 4)."""


def early_stopping_rule(scores: Sequence[float]) -> int | None:
    """Returns the first turn, from 1, that is not correct and follows one that is not; None if
    there is none.

    That turn keeps its score, and all later ones count as missing (early stop, section 4). A turn
    without a score, NaN, does not count as incorrect.
    """
    for turn in range(1, len(scores)):
        if scores[turn - 1] < RIGHT and scores[turn] < RIGHT:
            return turn
    return None
