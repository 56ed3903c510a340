"""Answers apart by what a model knew before it was shown anything.

A clue can help only where a model does not know the answer; where it does, an image can
only confuse. The mean over both kinds of questions is the mean of opposite effects, so
the two stand apart before they are pooled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of

TOLD, NOT_TOLD = "told in training", "not told"
KNOWN, UNKNOWN = "right without an image", "wrong without an image"
LEFT_OUT = " (that answer is not counted)"
NO_VERDICT = "no verdict without an image"
ALL = "all questions"
UNTOLD = ""
"""In place of a stratum: nothing tells it, or the answer itself chose it."""
STRATA = (TOLD, NOT_TOLD, KNOWN, KNOWN + LEFT_OUT, UNKNOWN, UNKNOWN + LEFT_OUT, NO_VERDICT, ALL)
_KEYS = ["model", "query_id"]


def with_strata(
    table: pd.DataFrame,
    told: Mapping[str, Collection[str]],
    zero_shot: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The rows of `table` with a column `stratum`, one stratum after the other, and then
    all rows again as `ALL`, as they were: what is computed by stratum has both.

    `told` names what each model was told in training, as groups (species); see
    `told_facts`. A question about one of these is `TOLD`, any other `NOT_TOLD`. For a
    model that is not in `told` a question is `KNOWN` where it earns more than the middle
    of the scale without an image, and else `UNKNOWN`; where such answers have no
    verdict, `NO_VERDICT`. They are read from the setting zero_shot of `zero_shot` (None:
    of `table`).

    What chose a stratum is no evidence within it: a question that was right by luck is
    less often right again. So of several zero-shot answers to a question one half
    chooses, and only the other half stays in the stratum; the halves change places from
    question to question. Where a question has only one, that answer chooses: its
    stratum then has no zero-shot, and its name says so (`LEFT_OUT`).

    `table` has the columns model, query_id and group. Raises `VragError` when a model
    was not told anything and has no zero-shot answers.
    """
    asked = _without_image(table if zero_shot is None else zero_shot)
    if odd := [each for each in table["model"].unique() if each not in {*told, *asked["model"]}]:
        raise VragError(
            f"with_strata: what {odd[0]} was told is not recorded, and there are no answers without"
            " an image to tell what it knows. Ask with `zero_shot(benchmark)` too."
        )
    placed = _by_model(table, told, asked)
    every = pd.concat([placed[placed["stratum"] != UNTOLD], table.assign(stratum=ALL)])
    order = every["stratum"].map(list(STRATA).index)
    return every.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def with_stratum(
    table: pd.DataFrame,
    told: Mapping[str, Collection[str]],
    zero_shot: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The rows of `table`, each once and in their order, with a column `stratum` as
    `with_strata` has it: what is saved, so that two runs are compared by stratum. "" in
    answers that chose one, and where neither `told` nor zero-shot answers tell.
    """
    asked = _without_image(table if zero_shot is None else zero_shot)
    return _by_model(table.reset_index(drop=True), told, asked).sort_index()


def strata_in_order(names: Iterable[str]) -> list[str]:
    """The names, each once, as `STRATA` orders them; then others, and "" last."""
    places = {name: place for place, name in enumerate(STRATA)}
    unknown = len(places)
    return sorted(set(names), key=lambda name: (name == "", places.get(name, unknown), name))


def _without_image(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["setting"] == "zero_shot"]


def _by_model(
    table: pd.DataFrame, told: Mapping[str, Collection[str]], asked: pd.DataFrame
) -> pd.DataFrame:
    """The rows, model by model, with their stratum, `UNTOLD` where they have none."""
    parts = [table.assign(stratum=UNTOLD)[:0]]
    for model, part in table.groupby("model", sort=False):
        if model in told:
            strata = part["group"].isin(list(told[str(model)])).map({True: TOLD, False: NOT_TOLD})
            parts.append(part.assign(stratum=strata))
        else:
            parts.append(_by_zero_shot(part, asked[asked["model"] == model]))
    return pd.concat(parts)


def _by_zero_shot(part: pd.DataFrame, asked: pd.DataFrame) -> pd.DataFrame:
    """One model's rows by what it knew, and `UNTOLD` in the answers that told so."""
    if asked.empty:
        return part.assign(stratum=UNTOLD)
    choosing = _choosing(asked)
    earned = asked[choosing].groupby("query_id", sort=False)["score"].mean()
    single = asked["query_id"].value_counts().reindex(earned.index) == 1
    known = np.where(earned > scale_of(asked).middle, KNOWN, UNKNOWN)
    strata = pd.Series(known, earned.index) + single.map({True: LEFT_OUT, False: ""})
    strata = strata.where(earned.notna(), NO_VERDICT)
    found = part["query_id"].map(strata).fillna(NO_VERDICT)
    ours = [*_KEYS, "draw", "sample"]
    if "setting" not in part:
        return part.assign(stratum=found)
    used = pd.MultiIndex.from_frame(asked.loc[choosing, ours])
    out = (part["setting"] == "zero_shot") & pd.MultiIndex.from_frame(part[ours]).isin(used)
    return part.assign(stratum=found.mask(out.to_numpy(), UNTOLD))


def _choosing(asked: pd.DataFrame) -> pd.Series:
    """Which zero-shot answers choose: one half of each question's, in one question the
    first and in the next the second; all where there is one.
    """
    by_query = asked.sort_values(["draw", "sample"], kind="stable").groupby("query_id", sort=False)
    place, count = by_query.cumcount(), by_query["query_id"].transform("size")
    first = (place < (count + 1) // 2).reindex(asked.index)
    question = pd.Series(pd.factorize(asked["query_id"])[0], asked.index)
    several = count.reindex(asked.index) > 1
    return first.where((question % 2 == 0) | ~several, ~first)


def by_stratum(results: pd.DataFrame, *, pooled: bool = True) -> dict[str, pd.DataFrame]:
    """The rows of each stratum, as figures take their panels: stratum → table; without
    that of all questions unless `pooled`.
    """
    found = dict(list(results.groupby("stratum", sort=False)))
    return {str(name): part for name, part in found.items() if pooled or name != ALL}
