"""What answers follow when a picture shows something else than the facts: the picture,
or what is known without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.accuracy import per_query
from vrag_kit.analysis.comparison import compare
from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.judging.scale import scale_of

NAMED = ("names the swapped value", "names the own value")
OUTCOMES = (*NAMED, "declines", "anything else")
"""What an answer does, exactly one of these; before a swapped picture the first follows
the pixels, the second keeps the fact.
"""


def swap_outcomes(own: pd.DataFrame, swapped: pd.DataFrame) -> pd.DataFrame:
    """The judged answers `own` with a column for each of `OUTCOMES`, 1.0 for what the
    answer does and 0.0 for the others; NaN where one of the verdicts is missing.

    `own` and `swapped` are the same answers, row by row, judged by what is true of the
    thing asked about, and by what is true in the swapped picture. An answer declines
    when at least half of its verdicts say so; it names a value that earns it at least
    the middle of the judge's scale, and more than the other value does. Anything else
    is a third value, both, or no word. Raises `VragError` for tables of different
    answers.
    """
    for table in (own, swapped):
        require_columns(table, ["model", "query_id", "score", "abstained"], "swap_outcomes")
    same = ["model", "query_id", "answer"]
    if not own[same].reset_index(drop=True).equals(swapped[same].reset_index(drop=True)):
        raise VragError(
            f"swap_outcomes: {len(own)} and {len(swapped)} rows that are not the same answers;"
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


def swap_effect(outcomes: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """What swapping the evidence causes: outcome, picture, model, `by`, value, ci_low,
    ci_high, n, n_failed, p, p_holm.

    `outcomes` of `swap_outcomes` has a column `picture`, "original" or "swapped". The
    value is the share of answers that do something before the swapped picture less the
    share that do it before the original one, paired over queries as in `compare`: for
    "names the swapped value" P(v | v is shown) − P(v | the own value is shown), since
    nothing else differs in the two pictures the causal effect of the evidence. 1 is an
    answerer that only looks, 0 one that does not.
    """
    arms = ["model", *by, "picture"]
    pictures = outcomes[outcomes["picture"].isin(["original", "swapped"])]
    parts = []
    for name in NAMED:
        shares = pictures.assign(score=pictures[name], worst=0.0, best=1.0)
        parts.append(per_query(shares, by=arms).assign(outcome=name))
    values = pd.concat(parts, ignore_index=True)
    return compare(values, arm="picture", by=["outcome", "model", *by], baseline="original")
