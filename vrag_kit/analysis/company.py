"""What company costs a clue: the length of the prompt, interference by what the other
pictures show, and how both grow with their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.accuracy import per_query
from vrag_kit.analysis.comparison import beside_each, compare
from vrag_kit.errors import VragError
from vrag_kit.generation.company import ALONE, BLANK, DUPLICATE, ELSEWHERE, NEAR, SAME
from vrag_kit.judging.scale import scale_of

LENGTH = "length"
INTERFERENCE = "interference"
HARDNESS = "hardness"
_STEPS = {
    LENGTH: (ALONE, (BLANK, DUPLICATE)),
    INTERFERENCE: (BLANK, None),
    HARDNESS: (ELSEWHERE, (SAME, NEAR)),
}
"""Step → the company it is measured from, and the companies compared with that; None
for all that show something else than the clue.
"""


def cost_of_company(judged: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """Paired differences of accuracy between companies of one clue: step, company,
    baseline, model, `by`, k, place, value, ci_low, ci_high, n, n_failed, p, p_holm
    (see `compare`).

    `judged` are the judged answers of `clue_among`, with its keys in the columns
    company and place. length: blank pictures, and the clue repeated, less the clue
    alone; interference: pictures that show something, less as many blanks at the same
    k and place; hardness: pictures of the same group less those of others. Where
    pictures of the same group help by contrast, interference by them is positive, and
    rises with k. A step whose companies were not asked has no rows; raises `VragError`
    when none has any, or without answers to the clue alone.
    """
    keys = ["model", *by, "k", "place"]
    values = per_query(judged, by=["company", *keys])
    is_alone = values["company"] == ALONE
    if not is_alone.any():
        raise VragError(
            f"cost_of_company: no answers to a clue {ALONE!r}; found"
            f" {', '.join(sorted(set(values['company'])))}."
        )
    others = set(values.loc[~is_alone, "company"])
    together = beside_each(values, arm="company", baseline=ALONE, over=["k", "place"])
    tables = []
    for step, (baseline, compared) in _STEPS.items():
        chosen = compared or tuple(others - {BLANK, DUPLICATE})
        rows = together[together["company"].isin([baseline, *chosen])]
        if not {baseline} < set(rows["company"]):
            continue
        differences = compare(rows, arm="company", by=keys, baseline=baseline)
        tables.append(differences.assign(step=step))
    if not tables:
        raise VragError(
            f"cost_of_company: nothing to compare; found {', '.join([ALONE, *sorted(others)])}."
            f" Expected {BLANK!r} or {DUPLICATE!r} beside {ALONE!r}, {BLANK!r} beside others, or"
            f" {ELSEWHERE!r} beside {SAME!r} or {NEAR!r}. Ask for more with `clue_among`."
        )
    table = pd.concat(tables, ignore_index=True)
    first = ["step", "company", "baseline"]
    return table[[*first, *(column for column in table if column not in first)]]


def growth_of_company(judged: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """How interference changes with the number of pictures: company, model, `by`, place,
    ks ("5 to 10"), value, ci_low, ci_high, n, n_failed, p, p_holm (see `compare`); no
    row for a single k. Raises `VragError` without answers beside blanks.

    The difference to as many blanks at the largest k less that at the smallest, paired
    over queries. Above 0, more pictures help to set the clue off (contrast); below 0
    each further one costs.
    """
    keys = ["model", *by, "place", "query_id", "group"]
    scale = scale_of(judged)
    values = per_query(judged, by=["company", "k", *keys[:-2]])
    is_blank = values["company"] == BLANK
    if not is_blank.any():
        raise VragError(
            f"growth_of_company: no answers beside {BLANK!r}; found"
            f" {', '.join(sorted(set(values['company'])))}. Ask `clue_among` with company of a"
            " benchmark `with_blanks`."
        )
    others = values[~values["company"].isin([ALONE, BLANK, DUPLICATE])]
    pairs = others.merge(values[is_blank], on=[*keys, "k"], suffixes=("", "_of_blank"))
    less = pairs.assign(value=pairs["value"] - pairs["value_of_blank"])
    ends = less[less["k"].isin([less["k"].min(), less["k"].max()])]
    ks = f"{ends['k'].min()} to {ends['k'].max()}"
    arms = ends.assign(
        end=ends["k"].eq(ends["k"].min()).map({True: "fewest", False: "most"}),
        ks=ks,
        worst=-scale.width,
        best=scale.width,
    )
    by_company = ["company", *keys[:-2], "ks"]
    return compare(arms, arm="end", by=by_company, baseline="fewest").drop(columns="end")
