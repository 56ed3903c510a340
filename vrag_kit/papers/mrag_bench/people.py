"""Human answers (Figures 6 and 7 and Table 3): their table, micro and macro averages, since the
paper averages people and models differently, and inter-rater agreement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.estimates import estimate
from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import ANSWER_COLUMNS
from vrag_kit.log import logger
from vrag_kit.papers.mrag_bench.audit import QUESTIONS, overall_means
from vrag_kit.papers.mrag_bench.results import (
    NO_LETTER,
    chosen_letters,
    multiple_choice_accuracy,
    scenario_weights,
)
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, Context, Status
from vrag_kit.widgets.multiple_choice import CHOICE_COLUMNS, option_text, read_choices

MICRO, MACRO = "micro", "macro"
_EACH_ALIKE = pd.Series(1.0, list(QUESTIONS)).rename_axis("scenario")


def load_human_answers(
    benchmark: Benchmark, contexts: Sequence[Context], files: Iterable[Path | str]
) -> pd.DataFrame:
    """Load participants' choices as a table of answers like that of `ask_models`.

    The column model holds the participant, and seconds is added. There is one row for each of
    `contexts` that a participant answered. A choice whose option has another position in the
    benchmark's question, or that is of no context, is left out; how many are is printed. Raises
    `VragError` as `read_choices`, and when two files hold choices of one participant.
    """
    chosen = pd.concat([pd.DataFrame(columns=CHOICE_COLUMNS), *map(read_choices, files)])
    twice = chosen.loc[chosen.duplicated(["query_id", "setting", "participant"]), "participant"]
    if not twice.empty:
        raise VragError(
            f"two files hold choices of {twice.iloc[0]!r}; keep a file for each participant."
        )
    asked = {(context.query_id, context.setting): context for context in contexts}
    rows = []
    for choice in chosen.to_dict("records"):
        context = asked.get((choice["query_id"], choice["setting"]))
        if context is None:
            continue
        query = benchmark.queries[context.query_id]
        if option_text(query, choice["option"]) != choice["option_text"]:
            continue
        row = {
            **asdict(context),
            "benchmark": benchmark.name,
            "model": choice["participant"],
            "sample": 0,
            "group": query.group,
            "template": "",
            "answer": choice["option"],
            "status": Status.OK.value,
            "detail": "",
            "answer_id": "",
            "seconds": choice["seconds"],
        }
        rows.append(row)
    logger.info(
        f"people: {chosen['participant'].nunique()} chose {len(chosen):,} options; {len(rows):,} of"
        f" them are to be compared, {len(chosen) - len(rows):,} belong to other questions",
    )
    return pd.DataFrame(rows, columns=[*ANSWER_COLUMNS, "seconds"]).astype({"m": "Int64"})


def micro_and_macro_accuracy(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Computes `multiple_choice_accuracy` of every model and setting as "micro" and "macro"
    average. Micro is over questions, in the paper's proportions, as for its models; macro is over
    scenarios, as for its people. Columns: model, setting, average, and those from metric on.

    `judged` comes from `with_scenarios`.
    """
    keys = ["model", "setting"]
    weights = {MICRO: scenario_weights(benchmark), MACRO: _EACH_ALIKE}
    tables = [
        multiple_choice_accuracy(judged, by=keys, weights=each).assign(average=average)
        for average, each in weights.items()
    ]
    both = pd.concat(tables, ignore_index=True).query("metric == 'accuracy'")
    return both[[*keys, "average", *both.columns.drop([*keys, "average"])]]


def published_human_baseline() -> pd.DataFrame:
    """Computes overall numbers of Table 3's people in both averages from its nine cells, in
    percent: model, setting, average, value, ci_low, ci_high (NaN), n (questions).

    Published are the macro averages: 38.47, 61.38 and 71.63.
    """
    means = overall_means(published("mrag_bench", 3, model_group="human"))
    means = means.rename(columns={"weighted": MICRO, "plain": MACRO})
    values = means.melt(["model", "setting"], [MICRO, MACRO], "average", ignore_index=False)
    values = values.sort_index(kind="stable").reset_index(drop=True)
    return values.assign(ci_low=math.nan, ci_high=math.nan, n=sum(QUESTIONS.values()))


def inter_rater_agreement(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Computes how often two answerers choose the same option, correct or incorrect. Columns:
    setting, first, second, value, ci_low, ci_high, n, n_failed, kappa; shares over the questions
    that both answered in a setting, with intervals over groups.

    n_failed counts questions where one answer names no option, or several. kappa is Cohen's:
    agreement beyond chance, given how often each chooses each letter; NaN if chance agreement is 1.
    Raises as `read_choice`.
    """
    from sklearn.metrics import cohen_kappa_score  # slow to import

    chosen = judged.drop_duplicates(["model", "setting", "query_id"])
    chosen = chosen.assign(letter=chosen_letters(chosen, benchmark).fillna(NO_LETTER))
    rows = []
    for setting, part in chosen.groupby("setting", sort=False):
        wide = part.pivot(index="query_id", columns="model", values="letter")
        for first, second in combinations(dict.fromkeys(part["model"]), 2):
            both = wide[[first, second]].dropna()
            if both.empty:
                continue
            letters = both[(both != NO_LETTER).all(axis=1)]
            same = letters[first].eq(letters[second]).astype(float).reindex(both.index)
            found = estimate(same.to_numpy(), both.index.map(benchmark.groups).to_numpy())
            kappa = math.nan
            if letters.stack().nunique() > 1:
                kappa = cohen_kappa_score(letters[first], letters[second])
            rows.append((setting, first, second, *found, kappa))
    numbers = ["value", "ci_low", "ci_high", "n", "n_failed", "kappa"]
    return pd.DataFrame(rows, columns=["setting", "first", "second", *numbers])
