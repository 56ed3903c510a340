"""Prompt sweep (Table 6): the best prompt is selected on one half of the groups and reported on the
other, as the best of twelve is biased where it was selected. Each prompt is also tested against the
mean of all, on all questions.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.comparisons import paired_differences
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.errors import VragError
from vrag_kit.types import ordered

SELECTION, HELD_OUT = "selection", "held_out"
TRAINED = "training prompt (control)"
NO_EVIDENCE = "no evidence (control)"
CONTROLS = (TRAINED, NO_EVIDENCE)
"""Control arms with an effect that a test should find: the prompt that an answerer was trained
with, alone, over the same evidence; and the same without any evidence. Neither is ever selected,
nor in the mean of the prompts.
"""
MEAN = "mean of the prompts"
"""Baseline of each prompt's test."""


def split_groups(groups: Sequence[str] | pd.Series, *, seed: int = 0) -> dict[str, str]:
    """Maps each group to "selection" or "held_out": the first half of the groups in an order by
    hash, and the rest, which may be one more. Raises `VragError` for fewer than two.
    """
    names = ordered(dict.fromkeys(map(str, groups)), seed, "halves of the sweep")
    if len(names) < 2:
        raise VragError(
            f"split_groups: {len(names)} group cannot be halved; choosing and reporting on the same"
            " questions would be too good. Take questions of several groups."
        )
    half = len(names) // 2
    return {name: SELECTION if place < half else HELD_OUT for place, name in enumerate(names)}


def prompt_sweep(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Computes each prompt's mean on both halves of a data set's groups, in percent: dataset,
    metric, prompt, half, value, ci_low, ci_high, n, n_failed, unit, selected.

    `judged` comes from `judge_suite`, with the column prompt. Values are means over models, as
    in Table 6, only for questions with a value for each prompt; n_failed counts the others of both
    halves. The selected prompt of a data set has the highest mean on the selection half, the first
    in case of ties, and is none of `CONTROLS`. Raises `VragError` as `split_groups` does.
    """
    tables = []
    for _, of_dataset in judged.groupby("dataset", sort=False):
        values, failed = _complete(per_query(of_dataset, by=["dataset", "metric", "prompt"]))
        halves = values["group"].astype(str).map(split_groups(of_dataset["group"], seed=seed))
        by = ["dataset", "metric", "prompt", "half"]
        means = cluster_means(values.assign(half=halves), by).assign(n_failed=failed)
        candidates = means[(means["half"] == SELECTION) & ~means["prompt"].isin(CONTROLS)]
        best = candidates["prompt"].iloc[candidates["value"].to_numpy().argmax()]
        tables.append(means.assign(selected=means["prompt"] == best))
    return to_percent(pd.concat(tables, ignore_index=True))


def prompt_gains(judged: pd.DataFrame) -> pd.DataFrame:
    """Computes the gain of each prompt over the mean of all but `CONTROLS` on the same questions of
    each data set, in points: prompt, dataset, metric, stratum, value, ci_low, ci_high, n, n_failed,
    p, baseline, p_holm, unit, model (all names if there are several, as values are means over
    them).

    `judged` is as in `prompt_sweep`, with the column stratum (`training_strata`). All questions
    with a value for each prompt count, as nothing is selected; p_holm corrects for all prompts of a
    data set and stratum.
    """
    by = ["dataset", "metric", "stratum"]
    values, _ = _complete(per_query(judged, by=["prompt", *by]))
    same = [*by, "query_id", "group", "score_min", "score_max"]
    candidates = values[~values["prompt"].isin(CONTROLS)]
    mean = candidates.groupby(same, sort=False)["value"].mean().reset_index()
    both = pd.concat([values, mean.assign(prompt=MEAN)], ignore_index=True)
    gains = paired_differences(both, arm="prompt", by=by, baseline=MEAN, repeats=["prompt"])
    return to_percent(gains.assign(model=" and ".join(judged["model"].unique())))


def _complete(values: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The values of questions that have one with every prompt, and how many have not."""
    queries = values.groupby(["dataset", "query_id"])["value"]
    is_whole = queries.transform("count") == queries.transform("size")
    return values[is_whole], values.loc[~is_whole, "query_id"].nunique()
