"""Share of a model's score that option format could explain: the same questions with their options
in other formats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vrag_kit.analysis import column_means, to_percent
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_bench.option_leakage import (
    normalise_option,
    option_format_baseline,
    with_normalised_options,
    with_planted_cue,
)
from vrag_kit.types import Benchmark, Query

AS_THEY_ARE = "original"
NORMALISED = "normalised"
APART = "planted"
NAMES_RIGHT = "cue on the correct option"
NAMES_WRONG = "cue on an incorrect option"
SILENT = "no cue"
STRATA = (NAMES_RIGHT, SILENT, NAMES_WRONG)


def option_format_variants(benchmark: Benchmark, *, seed: int = 0) -> dict[str, Benchmark]:
    """Returns the questions with original options, with normalised options and, if the originals
    have no cue, with a planted one (`with_planted_cue`).

    A question is not in the normalised arm if two of its options become equal.
    """
    kept = [name for name, query in benchmark.queries.items() if _stay_different(query)]
    alike = benchmark if len(kept) == len(benchmark.queries) else benchmark.subset(kept)
    arms = {AS_THEY_ARE: benchmark, NORMALISED: with_normalised_options(alike)}
    if not option_format_baseline(benchmark)["guessed"].any():
        arms[APART] = with_planted_cue(benchmark, seed=seed)
    return arms


def with_cue_strata(judged: pd.DataFrame, arms: Mapping[str, Benchmark]) -> pd.DataFrame:
    """Adds the column stratum: first the strata of `STRATA`, by the format cue of a question in the
    arm that has one, then all rows again as `ALL`.

    In an arm without the cue the strata have the same questions: their scores there are not due to
    the cue. The column `named` is the score where the cue is on the correct option, else 0, and
    missing where the score is.
    """
    speaking = arms.get(APART, arms[AS_THEY_ARE])
    said = option_format_baseline(speaking).set_index("query_id")
    kinds = np.select([said["correct"], said["guessed"]], [NAMES_RIGHT, NAMES_WRONG], SILENT)
    strata = judged["query_id"].map(pd.Series(kinds, said.index))
    is_named = strata == NAMES_RIGHT
    named = judged["score"].where(is_named | judged["score"].isna(), 0.0)
    every = judged.assign(named=named)
    parts = [every[strata == name].assign(stratum=name) for name in STRATA]
    return pd.concat([*parts, every.assign(stratum=ALL)], ignore_index=True)


def explained_by_cue(strata: pd.DataFrame, *, weights: pd.Series | None) -> pd.DataFrame:
    """Computes the part of each model's accuracy from questions with the cue on the correct option:
    the most that the cue could explain. In percent: model, setting, metric ("accuracy" or "of it,
    with the cue on the correct option"), value, ci_low, ci_high, n, n_failed.

    `strata` come from `with_cue_strata`. In the normalised arm, it is the score of the same
    questions without the cue.
    """
    rows = strata[strata["stratum"] == ALL]
    means = column_means(rows, ["score", "named"], by=["model", "setting"], weights=weights)
    words = {"score": "accuracy", "named": "of it, with the cue on the correct option"}
    return to_percent(means.assign(metric=means["metric"].map(words)))


def _stay_different(query: Query) -> bool:
    """Whether the options differ in more than their spelling."""
    return len(set(map(normalise_option, query.choices))) == len(query.choices)
