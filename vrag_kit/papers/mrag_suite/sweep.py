"""Prompt sweep (Table 6): the best prompt is selected on one half of the groups and reported on the
other, as the best of twelve is biased where it was selected. Each prompt is also tested against the
mean of all, on all questions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.analysis.comparisons import paired_differences
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.analysis.report_tables import NOTHING, format_ci
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, Context, ordered

SELECTION, HELD_OUT = "selection", "held_out"
TAUGHT = "training prompt (control)"
NO_EVIDENCE = "no evidence (control)"
PLANTED = (TAUGHT, NO_EVIDENCE)
"""Control arms with an effect that a test should find: the prompt that an answerer was trained
with, alone, over the same evidence; and the same without any evidence. Neither is ever selected,
nor in the mean of the prompts.
"""
MEAN = "mean of the prompts"
"""Baseline of each prompt's test."""
_COLUMNS = {"": "value", "_low": "ci_low", "_high": "ci_high", "_n": "n"}
"""What follows the name of a half in a column of `prompt_sweep` → the column of its means."""


def ask_with_prompts(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    answers_dir: Path | str,
    *,
    prompt_sets: Mapping[str, Mapping[str, PromptSet]],
    **how: Any,  # decoding and hardware, as `ask_models` has them
) -> dict[str, pd.DataFrame]:
    """Runs `ask_models` on each data set with each of its prompts, named in the first column,
    prompt. `prompt_sets` map data set → prompt → prompt set, such as `suite_prompts`. Raises as
    `ask_models` does.
    """
    found = {}
    for name, benchmark in suite.items():
        what = (models, benchmark, contexts[name], answers_dir)
        tables = {
            prompt: ask_models(*what, prompts=prompts, **how)
            for prompt, prompts in prompt_sets[name].items()
        }
        table = pd.concat(tables, names=["prompt"])
        found[name] = table.reset_index("prompt").reset_index(drop=True)
    return found


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
    """Computes each prompt's mean on the selection half and on the held-out half, in percent.
    Columns: prompt, selection and held_out, each with _low, _high and _n; selected; n_failed
    (questions without a value); metric.

    `judged` has the columns prompt and metric (`judge_suite`); values are means over models, as in
    Table 6, only for questions with a value for each prompt. The selected prompt has the highest
    mean on the selection half, the first in case of ties, and is none of `PLANTED`. Raises
    `VragError` as `split_groups` does.
    """
    values, failed = _complete(per_query(judged, by=["prompt"]))
    halves = values["group"].astype(str).map(split_groups(judged["group"], seed=seed))
    metric = judged["metric"].iloc[0]
    means = cluster_means(values.assign(half=halves), ["prompt", "half"]).assign(metric=metric)
    means = to_percent(means)
    table = pd.DataFrame(index=pd.Index(values["prompt"].unique(), name="prompt"))
    for half in (SELECTION, HELD_OUT):
        of_half = means[means["half"] == half].set_index("prompt")
        for end, column in _COLUMNS.items():
            table[half + end] = of_half[column]
    table = table.reset_index()
    best = table[SELECTION].where(~table["prompt"].isin(PLANTED)).idxmax()
    return table.assign(selected=table.index == best, n_failed=failed, metric=metric)


def prompt_gains(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Computes the gain of each prompt over the mean of all but `PLANTED` on the same questions of
    each data set, in points: prompt, stratum, value, ci_low, ci_high, n, n_failed, p, baseline,
    p_holm, metric, dataset, model (all names if there are several, as values are means over them).

    The tables are as in `prompt_sweep`, with the column stratum (`training_strata`). All questions
    with a value for each prompt count, as nothing is selected; p_holm corrects for all prompts of a
    data set and stratum.
    """
    tables = []
    for name, table in judged.items():
        values, _ = _complete(per_query(table, by=["prompt", "stratum"]))
        same = ["query_id", "group", "stratum", "score_min", "score_max"]
        shown = values[~values["prompt"].isin(PLANTED)]
        mean = shown.groupby(same, sort=False)["value"].mean().reset_index().assign(prompt=MEAN)
        gains = paired_differences(
            pd.concat([values, mean], ignore_index=True),
            arm="prompt",
            by=["stratum"],
            baseline=MEAN,
            repeats=["prompt"],
        )
        models = " and ".join(table["model"].unique())
        tables.append(gains.assign(metric=table["metric"].iloc[0], dataset=name, model=models))
    return to_percent(pd.concat(tables, ignore_index=True))


def _complete(values: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The values of questions that have one with every prompt, and how many have not."""
    known = values.groupby("query_id")["value"].transform("count")
    asked = values.groupby("query_id")["value"].transform("size")
    lacking = values[known < asked]["query_id"].nunique()
    return values[known == asked], lacking


def parse_rate_table(answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Counts the replies to each prompt in the requested format: rows prompts, columns data sets,
    "parsed of all". An unparsed reply is a failure, not an incorrect answer.
    """
    columns = {}
    for name, table in answers.items():
        read = (table["status"] == "ok").groupby(table["prompt"], sort=False)
        columns[name] = read.sum().astype(str) + " of " + read.size().astype(str)
    return pd.DataFrame(columns).fillna(NOTHING)


def compare_chosen_to_paper(sweeps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compares each data set's selected prompt with Table 6's best prompt and mean. Shown are its
    mean on the selection half and on the held-out half, and the highest held-out mean (except
    `PLANTED`), which could not be known beforehand. Table 6 is over six models and on the paper's
    data, in percent ("–" if it has none).
    """
    printed = published("mrag_suite", 6).set_index("dataset")
    rows = {}
    for name, table in sweeps.items():
        (chosen,) = table[table["selected"]].to_dict("records")
        theirs = printed.loc[[name]] if name in printed.index else printed.iloc[:0]
        highest = table[~table["prompt"].isin(PLANTED)][HELD_OUT].max()
        rows[name] = {
            "selected": chosen["prompt"],
            "where it was chosen": _cell(chosen, SELECTION),
            "where it is reported": _cell(chosen, HELD_OUT),
            "the highest reported": f"{highest:.1f}",
            "questions without a value": f"{chosen['n_failed']:.0f}",
            "printed (Table 6)": "".join(theirs["prompt"]) or NOTHING,
            "printed mean": "".join(theirs["value"].map("{:.1f}".format)) or NOTHING,
        }
    return pd.DataFrame(rows).T


def _cell(chosen: Mapping[Hashable, Any], half: str) -> str:
    """The mean of one half with its interval and n."""
    cell = format_ci(chosen[half], chosen[f"{half}_low"], chosen[f"{half}_high"])
    return f"{cell} (n = {chosen[f'{half}_n']:.0f})"
