"""The sweep over prompts (Table 6): the best is chosen on one half of the groups and
reported on the other, since the best of twelve is too good where it was chosen; and each is
tested against the mean of all, on all questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.analysis.accuracy import per_query
from vrag_kit.analysis.comparison import compare
from vrag_kit.analysis.intervals import summarise
from vrag_kit.errors import VragError
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.wording import Wording
from vrag_kit.options import Entry
from vrag_kit.order import ordered
from vrag_kit.types import Benchmark, Context

CHOOSE, REPORT = "choose", "report"
TAUGHT = "taught words (planted)"
NO_EVIDENCE = "no evidence (planted)"
PLANTED = (TAUGHT, NO_EVIDENCE)
"""Arms beside the paper's prompts, with an effect that a test should find: the words that an
answerer was taught, alone, over the same evidence; and these without any evidence. Neither
is ever chosen, nor in the mean of the prompts.
"""
MEAN = "mean of the prompts"
"""What each prompt is tested against."""


def ask_with_prompts(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    answers_dir: Path | str,
    *,
    wordings: Mapping[str, Mapping[str, Wording]],
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> dict[str, pd.DataFrame]:
    """Data set → `ask_models` with the wording of each of its prompts: its table after the
    column prompt. `wordings` are data set → prompt → wording, such as `suite_wording`.
    Raises as `ask_models` does.
    """
    found = {}
    for name, benchmark in suite.items():
        tables = []
        for prompt, wording in wordings[name].items():
            shown = (benchmark, contexts[name], answers_dir)
            table = ask_models(models, *shown, wording=wording, run_with=run_with)
            table.insert(0, "prompt", prompt)
            tables.append(table)
        found[name] = pd.concat(tables, ignore_index=True)
    return found


def halves_of(groups: Sequence[str] | pd.Series, *, seed: int = 0) -> dict[str, str]:
    """Group → "choose" or "report": the first half of the groups in an order by hash, and
    the others, of which there may be one more. Raises `VragError` for fewer than two.
    """
    names = ordered(dict.fromkeys(map(str, groups)), seed, "halves of the sweep")
    if len(names) < 2:
        raise VragError(
            f"halves_of: {len(names)} group cannot be halved; choosing and reporting on the same"
            " questions would be too good. Take questions of several groups."
        )
    half = len(names) // 2
    return {name: CHOOSE if place < half else REPORT for place, name in enumerate(names)}


def prompt_sweep(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Each prompt's mean on the half on which one is chosen and on the one on which it is
    reported: prompt, chosen, then choose and report, each with _low, _high and _n;
    n_failed (questions without a value); metric.

    `judged` has the columns prompt and metric (`judged_by_own`); values are means over
    models, as in Table 6, on the judge's scale, and those of a question only where each
    prompt has one. The chosen prompt has the highest mean of the choosing half, the first
    of equals, and none of `PLANTED`. Raises `VragError` as `halves_of` does, and
    where no question has a value with every prompt.
    """
    values, failed = _complete(per_query(judged, by=["prompt"]))
    values = values.assign(
        half=values["group"].astype(str).map(halves_of(judged["group"], seed=seed))
    )
    if values["half"].nunique() < 2:
        raise VragError(
            "prompt_sweep: one half of the groups has no question with a value for every prompt;"
            " ask more questions, or leave out the prompt that fails."
        )
    means = summarise(values, ["prompt", "half"])
    table = pd.DataFrame({"prompt": list(values["prompt"].unique())}).set_index("prompt")
    for half in (CHOOSE, REPORT):
        of_half = means[means["half"] == half].set_index("prompt")
        table[half] = of_half["value"]
        table[f"{half}_low"], table[f"{half}_high"] = of_half["ci_low"], of_half["ci_high"]
        table[f"{half}_n"] = of_half["n"]
    table = table.reset_index()
    best = table[CHOOSE].where(~table["prompt"].isin(PLANTED)).idxmax()
    metric = judged["metric"].iloc[0]
    return table.assign(chosen=table.index == best, n_failed=failed, metric=metric)


def prompt_gains(judged: pd.DataFrame) -> pd.DataFrame:
    """What each prompt gains over the mean of all but `PLANTED` on the same questions:
    prompt, stratum, value, ci_low, ci_high, n, n_failed, p, baseline, p_holm, metric.

    `judged` as `prompt_sweep` takes it, with the column stratum (`by_training`). All
    questions with a value for each prompt count, as nothing is chosen by them; p_holm
    corrects for all prompts of a stratum.
    """
    values, _ = _complete(per_query(judged, by=["prompt", "stratum"]))
    same = ["query_id", "group", "stratum", "worst", "best"]
    shown = values[~values["prompt"].isin(PLANTED)]
    mean = shown.groupby(same, sort=False)["value"].mean().reset_index().assign(prompt=MEAN)
    both = pd.concat([values, mean], ignore_index=True)
    found = compare(both, arm="prompt", by=["stratum"], baseline=MEAN, repeats=["prompt"])
    return found.assign(metric=judged["metric"].iloc[0])


def _complete(values: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The values of questions that have one with every prompt, and how many have not."""
    known = values.groupby("query_id")["value"].transform("count")
    asked = values.groupby("query_id")["value"].transform("size")
    lacking = values[known < asked]["query_id"].nunique()
    return values[known == asked], lacking
