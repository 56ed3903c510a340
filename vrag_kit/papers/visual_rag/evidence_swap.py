"""Outcomes of answers to counterfactual images: whether they follow the image, or what the model
knows without it.
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of

OUTCOMES = {
    "counterfactual_value": "new value",
    "original_value": "original value",
    "abstains": "abstains",
    "other_answer": "other answer",
}
"""The outcomes of an answer, exactly one each, and their names in figures. With a counterfactual
image the first follows the image, the second keeps the fact.
"""


def counterfactual_outcomes(own: pd.DataFrame, swapped: pd.DataFrame) -> pd.DataFrame:
    """Adds a column for each of `OUTCOMES` to the judged answers `own`: 1.0 for the outcome of the
    answer, 0.0 for the others. NaN where one of the verdicts is missing.

    `own` and `swapped` are the same answers, row by row, judged by the original value and by the
    counterfactual one. An answer abstains when at least half of its verdicts in either table say
    so; it names a value by which it scores at least the middle of the judge's scale, and more than
    by the other. Anything else is a third value, both, or empty. Raises `VragError` for tables of
    different answers.
    """
    same = ["model", "query_id", "answer"]
    swapped = swapped.reset_index(drop=True).set_axis(own.index[: len(swapped)])
    if not own[same].equals(swapped[same]):
        raise VragError(
            f"counterfactual_outcomes: {len(own)} and {len(swapped)} rows that are not the same"
            " answers; expected one table of answers, judged twice."
        )
    middle = scale_of(own).middle
    as_own, as_swapped = own["score"], swapped["score"]
    abstains = (own["abstained"] >= 0.5) | (swapped["abstained"] >= 0.5)
    follows = ~abstains & (as_swapped >= middle) & (as_swapped > as_own)
    keeps = ~abstains & (as_own >= middle) & (as_own > as_swapped)
    columns = (follows, keeps, abstains, ~(follows | keeps | abstains))
    found = pd.DataFrame(dict(zip(OUTCOMES, columns, strict=True)), dtype=float)
    return own.assign(**found.mask(as_own.isna() | as_swapped.isna()))
