"""When a conversation is over: two turns one after the other that are not right."""

from __future__ import annotations

from collections.abc import Sequence

RIGHT = 1.0
"""What a right turn scores; a missing one 0, a wrong one −1 (section 4)."""


def two_not_right(scores: Sequence[float]) -> int | None:
    """The first turn, from 1, at which it and the turn before are both not right; None
    where there is none.

    That turn keeps its score, and all later ones count as missing (early stop, section
    4). A turn whose score is not known, NaN, ends nothing.
    """
    for turn in range(1, len(scores)):
        if scores[turn - 1] < RIGHT and scores[turn] < RIGHT:
            return turn
    return None
