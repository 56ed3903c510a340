"""Short answers of the data sets over searched evidence and in the modes of evidence, each data
set by its own metric (Table 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import to_percent
from vrag_kit.analysis.strata import ALL, expand_strata, trained_groups
from vrag_kit.config import Entry
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging import Judge, judge_answers
from vrag_kit.papers.mrag_suite.datasets import dataset_metric
from vrag_kit.types import Benchmark, Context, Query
from vrag_kit.workspace import Workspace

ZERO_SHOT = "zero_shot"
ARMS = {
    ZERO_SHOT: "no evidence",
    MODES[0]: "distractors only",
    MODES[1]: "gold and distractors",
    MODES[2]: "gold only",
}
"""Maps a setting to the evidence shown, from none to gold only."""
EFFECTS = ((MODES[2], ZERO_SHOT), (MODES[1], MODES[2]), (MODES[0], ZERO_SHOT))
"""Pairs (setting, baseline): the gain of gold evidence, the cost of distractors added to it, and
the effect of distractors alone.
"""
FEWEST = 5
"""Differences of fewer questions are not drawn."""
SAME_EVIDENCE = (
    f"Gold and distractors is drawn where at least {FEWEST} questions have a distractor:"
    " the gold documents of most questions of Visual-RAG fill the places for images."
)
METRIC_NAMES = {
    "normalised_em": "exact match",
    "choice_accuracy": "multiple-choice accuracy",
    "relaxed_accuracy": "relaxed accuracy",
    "keypoint_coverage": "keypoint coverage",
    "webqa_f1": "WebQA's F1",
    "score (rule)": "rule-based score",
}
"""Metric → its label in figures."""


def ask_suite(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    prompt_sets: Mapping[str, PromptSet],
    at: Workspace,
    **how: Any,  # decoding, as `ask_models` has them
) -> pd.DataFrame:
    """Asks models about the contexts of each data set with its prompts. Returns the tables of
    `ask_models`, one below another, with the column dataset. Raises as that does.
    """
    tables = []
    for name, benchmark in suite.items():
        prompts = prompt_sets[name]
        answers = ask_models(models, benchmark, contexts[name], at, prompts=prompts, **how)
        tables.append(answers.assign(dataset=name))
    return pd.concat(tables, ignore_index=True)


def judge_suite(
    suite: Mapping[str, Benchmark], answers: pd.DataFrame, judges: Mapping[str, Judge]
) -> pd.DataFrame:
    """Judges the answers to each data set (column dataset) by its judge. Adds the columns of
    `judge_answers` and metric: the data set's own (`dataset_metric`), or "score (…)" with the
    judge's name. Raises as `judge_answers` does.
    """
    tables = []
    for name, table in answers.groupby("dataset", sort=False):
        benchmark, judge = suite[str(name)], judges[str(name)]
        judged = judge_answers(judge, benchmark, table)
        metric = dataset_metric(str(name), benchmark) or f"score ({judge.name})"
        tables.append(judged.assign(metric=metric, judge_prompt=judged.get("judge_prompt", "")))
    return pd.concat(tables, ignore_index=True)


def training_strata(
    judged: pd.DataFrame,
    suite: Mapping[str, Benchmark],
    models: Sequence[Entry],
    *,
    every_pool: bool = False,
) -> pd.DataFrame:
    """Adds the column stratum: in the model's training data, or not. All questions of a data set
    follow again, unless it has only one stratum and `every_pool` is false. If the training data of
    some model are unknown, there is "all questions" only.

    `judged` has dataset, model and group. Training data are those of `trained_groups` on the
    questions of all data sets together: a data set whose species are all outside of them is then
    recognised as such.
    """
    queries: dict[str, Query] = {}
    for name, benchmark in suite.items():
        queries |= {f"{name} {query_id}": each for query_id, each in benchmark.queries.items()}
    every = replace(next(iter(suite.values())), name="the suite", queries=queries)
    trained = trained_groups(models, every)
    tables = []
    for _, table in judged.groupby("dataset", sort=False):
        if not set(table["model"]) <= set(trained):
            tables.append(table.assign(stratum=ALL))
            continue
        apart = expand_strata(table, trained)
        single = apart["stratum"].nunique() == 2  # it, and all questions
        tables.append(apart[apart["stratum"] != ALL] if single and not every_pool else apart)
    return pd.concat(tables, ignore_index=True)


def mode_effects(judged: pd.DataFrame) -> pd.DataFrame:
    """Computes `EFFECTS` on the same questions, in points: dataset, metric, model, stratum,
    setting, baseline, value, ci_low, ci_high, n, n_failed, p, p_holm, unit. `judged` comes from
    `training_strata`.

    A question is excluded from an effect whose two settings show it the same documents, as where
    gold evidence leaves no room for distractors. p_holm corrects each effect for all data sets and
    models, the strata in one family and the pooled rows in another. Data sets are not pooled, as
    their metrics differ.
    """
    by, tables = ["dataset", "metric", "model", "stratum"], []
    for setting, baseline in EFFECTS:
        pair = judged[judged["setting"].isin([setting, baseline])]
        pair = drop_same_documents(pair, baseline)
        tables.append(paired_differences(pair, arm="setting", by=by, baseline=baseline))
    table = pd.concat(tables, ignore_index=True)
    families = table.assign(is_pooled=table["stratum"] == ALL)
    table["p_holm"] = holm_by_family(families, ["setting", "baseline", "is_pooled"])
    return to_percent(table)


def drop_same_documents(answers: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Drops the answers that were shown the same documents, in any order, as the answer to that
    question in the setting `baseline`: they say nothing about a difference from it.
    """
    shown, is_baseline = answers["doc_ids"].map(frozenset), answers["setting"] == baseline
    questions = [answers[name] for name in ("dataset", "model", "query_id")]
    before = shown.where(is_baseline).groupby(questions).transform("first")
    return answers[is_baseline | ~shown.map(bool) | (shown != before)]


def strata_or_pooled(table: pd.DataFrame) -> pd.DataFrame:
    """Drops the rows of all questions of data sets that have strata; `table` is one of means or
    effects.
    """
    is_part = table["stratum"] != ALL
    return table[is_part | ~table["dataset"].isin(table.loc[is_part, "dataset"])]


def without_same_evidence(means: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """Drops the means of gold and distractors where fewer than `FEWEST` questions have a
    distractor, by the n of `effects` (`mode_effects`, or changes of claim metrics).
    """
    keys = ["dataset", "model", "stratum", "setting"]
    enough = pd.MultiIndex.from_frame(effects.loc[effects["n"] >= FEWEST, keys])
    is_known = pd.MultiIndex.from_frame(means[keys]).isin(enough)
    return means[is_known | (means["setting"] != MODES[1])]


def mode_names(table: pd.DataFrame) -> dict[str, str]:
    """Returns the names of settings (`ARMS`), and of each data set with its own metric, in figures
    of `table`, which is one of means or effects.
    """
    metrics = zip(table["dataset"], table["metric"].replace(METRIC_NAMES), strict=True)
    return {**ARMS, **{name: f"{name}, {metric}" for name, metric in metrics}}
