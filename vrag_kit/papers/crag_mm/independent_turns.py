"""Effect of an early-stopping rule on conversations whose turns are independent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from vrag_kit.analysis.conversations import StopRule
from vrag_kit.papers.crag_mm.stop_rule import early_stopping_rule

LENGTHS: Mapping[int, float] = {2: 3, 3: 7, 4: 20, 5: 37, 6: 33}
"""Maps the number of turns of a conversation to its weight. The weights are ours: 2 to 6 turns,
mean 4.9, as in the paper.
"""


def independent_turns_expectation(
    rates: tuple[float, float, float],
    *,
    lengths: Mapping[int, float] = LENGTHS,
    stop: StopRule = early_stopping_rule,
) -> dict[str, float]:
    """Computes exact expectations for independent turns that are correct, missing or incorrect with
    the same `rates`. Keys: early_stop, early_stop_before_last_turn, truthfulness,
    missing_early_stopped (of the turns of all conversations) and successful_turns, as shares and
    turns.

    Rates are normalised. Every sequence of turns is enumerated, 3 to the power of their number.
    """
    chances = dict(zip((1.0, 0.0, -1.0), (rate / sum(rates) for rate in rates), strict=True))
    totals = dict.fromkeys(
        (
            "early_stop",
            "early_stop_before_last_turn",
            "truthfulness",
            "missing_early_stopped",
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
            totals["early_stop_before_last_turn"] += chance * (len(kept) < length)
            totals["truthfulness"] += chance * sum(kept) / length
            missing = kept.count(0.0) + length - len(kept)
            totals["missing_early_stopped"] += chance * missing / turns
            totals["successful_turns"] += chance * kept.count(1.0)
    return totals
