"""What a stop rule does to conversations whose turns have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from vrag_kit.analysis import StopRule
from vrag_kit.papers.crag_mm.stop_rule import two_not_right

LENGTHS: Mapping[int, float] = {2: 3, 3: 7, 4: 20, 5: 37, 6: 33}
"""Turns of a conversation → its weight; ours: with the paper's 2 to 6 turns and, as there,
4.9 in the mean.
"""


def independent_turns(
    rates: tuple[float, float, float],
    *,
    lengths: Mapping[int, float] = LENGTHS,
    stop: StopRule = two_not_right,
) -> dict[str, float]:
    """The exact expectation where each turn is right, missing or wrong with the same
    `rates`, whatever went before: early_stop, early_stop_with_turns_left, truthfulness,
    missing_stopped (of the turns of all conversations) and successful_turns, as shares
    and turns.

    Rates are taken in proportion. Every sequence of turns is gone through, 3 to the
    power of their number.
    """
    chances = dict(zip((1.0, 0.0, -1.0), (rate / sum(rates) for rate in rates), strict=True))
    totals = dict.fromkeys(
        (
            "early_stop",
            "early_stop_with_turns_left",
            "truthfulness",
            "missing_stopped",
            "successful_turns",
        ),
        0.0,
    )
    turns = sum(weight * length for length, weight in lengths.items()) / sum(lengths.values())
    for length, weight in lengths.items():
        for scores in product(chances, repeat=length):
            chance = weight / sum(lengths.values()) * prod(chances[each] for each in scores)
            turn = stop(scores)
            kept = scores if turn is None else scores[: turn + 1]
            totals["early_stop"] += chance * (turn is not None)
            totals["early_stop_with_turns_left"] += chance * (len(kept) < length)
            totals["truthfulness"] += chance * sum(kept) / length
            totals["missing_stopped"] += chance * (kept.count(0.0) + length - len(kept)) / turns
            totals["successful_turns"] += chance * kept.count(1.0)
    return totals
