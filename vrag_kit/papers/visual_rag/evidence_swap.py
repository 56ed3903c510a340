"""Outcomes of answers to counterfactual images: whether they follow the image, or what the model
knows without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.comparisons import paired_differences
from vrag_kit.analysis.means import per_query
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.tables import require_columns

NAMED = ("counterfactual_value", "original_value")
OUTCOMES = (*NAMED, "abstains", "other_answer")
"""The outcomes of an answer, exactly one each. With a counterfactual image the first follows the
image, the second keeps the fact.
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
    for table in (own, swapped):
        require_columns(
            table, ["model", "query_id", "score", "abstained"], "counterfactual_outcomes"
        )
    same = ["model", "query_id", "answer"]
    if not own[same].reset_index(drop=True).equals(swapped[same].reset_index(drop=True)):
        raise VragError(
            f"counterfactual_outcomes: {len(own)} and {len(swapped)} rows that are not the same"
            " answers;"
            " expected one table of answers, judged twice."
        )
    middle = scale_of(own).middle
    as_own, as_swapped = own["score"], swapped["score"].set_axis(own.index)
    declines = (own["abstained"] >= 0.5) | (swapped["abstained"].set_axis(own.index) >= 0.5)
    follows = ~declines & (as_swapped >= middle) & (as_swapped > as_own)
    keeps = ~declines & (as_own >= middle) & (as_own > as_swapped)
    columns = (follows, keeps, declines, ~(follows | keeps | declines))
    found = dict(zip(OUTCOMES, columns, strict=True))
    unknown = as_own.isna() | as_swapped.isna()
    shares = {name: column.astype(float).mask(unknown) for name, column in found.items()}
    return own.assign(**shares)


def counterfactual_effect(outcomes: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """Causal effect of counterfactual evidence on answers: outcome, image, model, `by`, value,
    ci_low, ci_high, n, n_failed, p, p_holm.

    `outcomes` of `counterfactual_outcomes` has a column `image`, "original" or "counterfactual".
    The value is the share of answers with an outcome given the counterfactual image minus the share
    given the original, paired over queries as in `paired_differences`. For "counterfactual_value"
    it is P(v | v is shown) − P(v | the original value is shown), a causal effect since the two
    images differ in nothing else. 1 is a model that only follows the image, 0 one that ignores it.
    """
    arms = ["model", *by, "image"]
    pictures = outcomes[outcomes["image"].isin(["original", "counterfactual"])]
    parts = []
    for name in NAMED:
        shares = pictures.assign(score=pictures[name], score_min=0.0, score_max=1.0)
        parts.append(per_query(shares, by=arms).assign(outcome=name))
    values = pd.concat(parts, ignore_index=True)
    return paired_differences(
        values, arm="image", by=["outcome", "model", *by], baseline="original"
    )
