"""Answer flips: questions answered correctly without examples or with ground truth, and incorrectly
with retrieved examples (Figures 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis import to_percent
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.papers.mrag_bench.audit import QUESTIONS

SETTINGS = {"no_rag": "no examples", "gt_rag": "gold", "retrieved_rag": "retrieved"}
"""Maps a setting to its label in the figure."""
TURNED = {
    "right alone, wrong with retrieved": ("no_rag", "retrieved_rag"),
    "right with GT, wrong with retrieved": ("gt_rag", "retrieved_rag"),
    "wrong alone, right with retrieved": ("retrieved_rag", "no_rag"),
    "wrong alone, right with GT": ("gt_rag", "no_rag"),
}
"""Maps each kind of flip to (the setting with the correct answer, the one with the incorrect)."""


def answer_flips(
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Computes how often examples flip answers, in percent of the questions with a verdict in both
    settings: `by`, metric (of `TURNED`), value, ci_low, ci_high, n, n_failed. `judged` comes from
    `with_scenarios`; `weights` is `scenario_weights`.
    """
    scores = scores_by_setting(judged)
    rows = []
    for name, (right, wrong) in TURNED.items():
        known = scores[[right, wrong]].notna().all(axis=1)
        is_turned = (scores[right] > 0) & ~(scores[wrong] > 0)
        value = is_turned.astype(float).where(known)
        rows.append(scores[[*by, "group", "scenario"]].assign(metric=name, value=value))
    return to_percent(
        cluster_means(pd.concat(rows, ignore_index=True), [*by, "metric"], weights=weights)
    )


def example_per_scenario(judged: pd.DataFrame, model: str) -> list[str]:
    """Selects a question of each scenario, in the paper's order: the first that a model answers
    correctly with ground truth and incorrectly with retrieved examples, else its first.
    """
    scores = scores_by_setting(judged[judged["model"] == model])
    odd = (scores["gt_rag"] > 0) & (scores["retrieved_rag"] == 0)
    ranked = scores.assign(odd=odd).sort_values("odd", ascending=False, kind="stable")
    first = ranked.drop_duplicates("scenario").set_index("scenario")["query_id"]
    return [str(first[scenario]) for scenario in QUESTIONS if scenario in first]


def scores_by_setting(judged: pd.DataFrame) -> pd.DataFrame:
    """Pivots scores to one row per model and question: model, query_id, group, scenario, stratum,
    and the score in each of `SETTINGS`.
    """
    rows = judged[judged["setting"].isin(list(SETTINGS))]
    keys = ["model", "query_id", "group", "scenario", "stratum"]
    wide = rows.groupby([*keys, "setting"], sort=False)["score"].mean().unstack("setting")
    return wide.reindex(columns=list(SETTINGS)).reset_index()
