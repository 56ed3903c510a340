"""How much of a model's score the spelling of the options could explain: the same
questions with their options spelt otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vrag_kit.analysis import column_means, in_percent
from vrag_kit.analysis.mix import Mix
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_bench.spelling import (
    options_spelt_alike,
    options_spelt_apart,
    spelling_baseline,
    spelt_alike,
)
from vrag_kit.types import Benchmark, Query

AS_THEY_ARE = "as they are"
ALIKE = "spelt alike"
APART = "a copy, spelt apart"
NAMES_RIGHT = "spelling names the right option"
NAMES_WRONG = "spelling names a wrong option"
SILENT = "spelling names none"
STRATA = (NAMES_RIGHT, SILENT, NAMES_WRONG)


def spelling_arms(benchmark: Benchmark, *, seed: int = 0) -> dict[str, Benchmark]:
    """The questions with their options as they are; spelt alike; and where their spelling
    names no option at all, a copy of ours in which it does (`options_spelt_apart`).

    A question that has two equal options once they are spelt alike is not in that arm.
    """
    kept = [name for name, query in benchmark.queries.items() if _stay_different(query)]
    alike = benchmark if len(kept) == len(benchmark.queries) else benchmark.subset(kept)
    arms = {AS_THEY_ARE: benchmark, ALIKE: options_spelt_alike(alike)}
    if not spelling_baseline(benchmark)["spoke"].any():
        arms[APART] = options_spelt_apart(benchmark, seed=seed)
    return arms


def by_spelling(judged: pd.DataFrame, arms: Mapping[str, Benchmark]) -> pd.DataFrame:
    """The table of answers, one stratum of `STRATA` after the other by what the spelling
    says of a question in the arm where it speaks, then all rows again as `ALL`.

    So in an arm without that spelling the strata hold the same questions: what these
    earn is not by spelling. The column `named` is the score where the spelling names the
    right option, else 0, and missing where the score is.
    """
    speaking = arms.get(APART, arms[AS_THEY_ARE])
    said = spelling_baseline(speaking).set_index("query_id")
    kinds = np.select([said["right"], said["spoke"]], [NAMES_RIGHT, NAMES_WRONG], SILENT)
    strata = judged["query_id"].map(pd.Series(kinds, said.index))
    is_named = strata == NAMES_RIGHT
    named = judged["score"].where(is_named | judged["score"].isna(), 0.0)
    every = judged.assign(named=named)
    parts = [every[strata == name].assign(stratum=name) for name in STRATA]
    return pd.concat([*parts, every.assign(stratum=ALL)], ignore_index=True)


def explained_by_spelling(strata: pd.DataFrame, *, mix: Mix | None) -> pd.DataFrame:
    """Of each model's accuracy, the points earned on questions whose right option the
    spelling names: the most that it could explain. In percent: model, setting, metric
    ("accuracy" or "of it, where the spelling names it"), value, ci_low, ci_high, n,
    n_failed.

    `strata` come from `by_spelling`. Where the options are spelt alike, the same
    questions earn what they earn without.
    """
    rows = strata[strata["stratum"] == ALL]
    means = column_means(rows, ["score", "named"], by=["model", "setting"], mix=mix)
    words = {"score": "accuracy", "named": "of it, where the spelling names it"}
    return in_percent(means.assign(metric=means["metric"].map(words)))


def _stay_different(query: Query) -> bool:
    """Whether the options differ in more than their spelling."""
    return len(set(map(spelt_alike, query.choices))) == len(query.choices)
