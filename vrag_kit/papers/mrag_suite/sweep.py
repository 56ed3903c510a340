"""Prompt sweep (Table 6): the best prompt is selected on one half of the groups and reported on the
other, as the best of twelve is biased where it was selected. Each prompt is also tested against the
mean of all, on all questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
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


def ask_with_prompts(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    answers_dir: Path | str,
    *,
    prompt_sets: Mapping[str, Mapping[str, PromptSet]],
    decoding: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
    hardware: Mapping[str, Any] | None = None,
) -> dict[str, pd.DataFrame]:
    """Runs `ask_models` on each data set with each of its prompts, named in the first column,
    prompt. `prompt_sets` map data set → prompt → prompt set, such as `suite_prompts`. Raises as
    `ask_models` does.
    """
    found = {}
    for name, benchmark in suite.items():
        tables = []
        for prompt, prompts in prompt_sets[name].items():
            shown = (benchmark, contexts[name], answers_dir)
            table = ask_models(
                models, *shown, prompts=prompts, decoding=decoding, hardware=hardware
            )
            table.insert(0, "prompt", prompt)
            tables.append(table)
        found[name] = pd.concat(tables, ignore_index=True)
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
    """Computes each prompt's mean on the selection half and on the held-out half. Columns: prompt,
    selected, then selection and held_out, each with _low, _high and _n; n_failed (questions without
    a value); metric.

    `judged` has the columns prompt and metric (`judge_suite`); values are means over models, as in
    Table 6, on the judge's scale, only for questions with a value for each prompt. The selected
    prompt has the highest mean on the selection half, the first in case of ties, and is none of
    `PLANTED`. Raises `VragError` as `split_groups` does, and if no question has a value with every
    prompt.
    """
    values, failed = _complete(per_query(judged, by=["prompt"]))
    values = values.assign(
        half=values["group"].astype(str).map(split_groups(judged["group"], seed=seed))
    )
    if values["half"].nunique() < 2:
        raise VragError(
            "prompt_sweep: one half of the groups has no question with a value for every prompt;"
            " ask more questions, or leave out the prompt that fails."
        )
    means = cluster_means(values, ["prompt", "half"])
    table = pd.DataFrame({"prompt": list(values["prompt"].unique())}).set_index("prompt")
    for half in (SELECTION, HELD_OUT):
        of_half = means[means["half"] == half].set_index("prompt")
        table[half] = of_half["value"]
        table[f"{half}_low"], table[f"{half}_high"] = of_half["ci_low"], of_half["ci_high"]
        table[f"{half}_n"] = of_half["n"]
    table = table.reset_index()
    best = table[SELECTION].where(~table["prompt"].isin(PLANTED)).idxmax()
    metric = judged["metric"].iloc[0]
    return table.assign(selected=table.index == best, n_failed=failed, metric=metric)


def prompt_gains(judged: pd.DataFrame) -> pd.DataFrame:
    """Computes the gain of each prompt over the mean of all but `PLANTED` on the same questions:
    prompt, stratum, value, ci_low, ci_high, n, n_failed, p, baseline, p_holm, metric.

    `judged` is as in `prompt_sweep`, with the column stratum (`training_strata`). All questions
    with a value for each prompt count, as nothing is selected; p_holm corrects for all prompts of a
    stratum.
    """
    values, _ = _complete(per_query(judged, by=["prompt", "stratum"]))
    same = ["query_id", "group", "stratum", "score_min", "score_max"]
    shown = values[~values["prompt"].isin(PLANTED)]
    mean = shown.groupby(same, sort=False)["value"].mean().reset_index().assign(prompt=MEAN)
    both = pd.concat([values, mean], ignore_index=True)
    found = paired_differences(
        both, arm="prompt", by=["stratum"], baseline=MEAN, repeats=["prompt"]
    )
    return found.assign(metric=judged["metric"].iloc[0])


def _complete(values: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The values of questions that have one with every prompt, and how many have not."""
    known = values.groupby("query_id")["value"].transform("count")
    asked = values.groupby("query_id")["value"].transform("size")
    lacking = values[known < asked]["query_id"].nunique()
    return values[known == asked], lacking


_ENDS = ("", "_low", "_high")
_IN_SHARES = [f"{name}{end}" for name, end in product((SELECTION, HELD_OUT), _ENDS)]


def sweep_by_dataset(
    judged: Mapping[str, pd.DataFrame], *, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Runs `prompt_sweep` on each data set, in percent and points; raises as that does."""
    sweeps = {}
    for name, table in judged.items():
        swept = prompt_sweep(table, seed=seed)
        sweeps[name] = swept.assign(**{column: 100 * swept[column] for column in _IN_SHARES})
    return sweeps


def parse_rate_table(answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Counts the replies to each prompt in the requested format: rows prompts, columns data sets,
    "parsed of all". An unparsed reply is a failure, not an incorrect answer.
    """
    columns = {}
    for name, table in answers.items():
        read = (table["status"] == "ok").groupby(table["prompt"], sort=False)
        counts = read.agg(["sum", "size"])
        columns[name] = counts["sum"].astype(str) + " of " + counts["size"].astype(str)
    return pd.DataFrame(columns).fillna(NOTHING)


def prompt_gains_by_dataset(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Computes `prompt_gains` of each data set, in points, with the columns dataset and model (all
    names if there are several, as values are means over them).
    """
    tables = []
    for name, table in judged.items():
        models = " and ".join(table["model"].unique())
        tables.append(prompt_gains(table).assign(dataset=name, model=models))
    return to_percent(pd.concat(tables, ignore_index=True))


def compare_chosen_to_paper(sweeps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compares each data set's selected prompt with Table 6's best prompt and mean. Shown are its
    mean on the selection half and on the held-out half, and the highest held-out mean (except
    `PLANTED`), which could not be known beforehand. Table 6 is over six models and on the paper's
    data, in percent ("–" if it has none).
    """
    printed = published("mrag_suite", 6).set_index("dataset")
    rows = {}
    for name, table in sweeps.items():
        chosen = table[table["selected"]]
        row = {"selected": str(chosen["prompt"].iloc[0])}
        for half, said in ((SELECTION, "where it was chosen"), (HELD_OUT, "where it is reported")):
            row[said] = _cell(chosen, half)
        highest = table[~table["prompt"].isin(PLANTED)][HELD_OUT].max()
        row["the highest reported"] = f"{highest:.1f}"
        row["questions without a value"] = f"{chosen['n_failed'].iloc[0]:.0f}"
        there = printed[printed.index == name]
        row["printed (Table 6)"] = NOTHING if there.empty else str(there["prompt"].iloc[0])
        row["printed mean"] = NOTHING if there.empty else f"{there['value'].iloc[0]:.1f}"
        rows[name] = row
    return pd.DataFrame(rows).T


def _cell(chosen: pd.DataFrame, half: str) -> str:
    """The mean of one half with its interval and n."""
    row = chosen.iloc[0]
    cell = format_ci(row[half], row[f"{half}_low"], row[f"{half}_high"])
    return f"{cell} (n = {row[f'{half}_n']:.0f})"
