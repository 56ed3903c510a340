"""Where examples turn an answer round: right without or with ground truth, and wrong with
what was retrieved (Figures 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis import in_percent
from vrag_kit.analysis.intervals import summarise
from vrag_kit.analysis.mix import Mix
from vrag_kit.papers.mrag_bench.audit import QUESTIONS

SETTINGS = {"no_rag": "alone", "gt_rag": "GT", "retrieved_rag": "retrieved"}
"""Setting → what it is called beside a question."""
TURNED = {
    "right alone, wrong with retrieved": ("no_rag", "retrieved_rag"),
    "right with GT, wrong with retrieved": ("gt_rag", "retrieved_rag"),
    "wrong alone, right with retrieved": ("retrieved_rag", "no_rag"),
    "wrong alone, right with GT": ("gt_rag", "no_rag"),
}
"""What is counted → (the setting that is right, the one that is wrong)."""


def turned(
    judged: pd.DataFrame, *, mix: Mix | None, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """How often examples turn answers round, in percent of the questions that have a
    verdict in both settings: `by`, metric (of `TURNED`), value, ci_low, ci_high, n,
    n_failed. `judged` comes from `with_scenarios`; `mix` is `papers_mix`.
    """
    scores = scores_by_setting(judged)
    rows = []
    for name, (right, wrong) in TURNED.items():
        known = scores[[right, wrong]].notna().all(axis=1)
        is_turned = (scores[right] > 0) & ~(scores[wrong] > 0)
        value = is_turned.astype(float).where(known)
        rows.append(scores[[*by, "group", "scenario"]].assign(metric=name, value=value))
    return in_percent(summarise(pd.concat(rows, ignore_index=True), [*by, "metric"], mix=mix))


def one_of_each(judged: pd.DataFrame, model: str) -> list[str]:
    """A question of each scenario, in the paper's order: the first that a model gets
    right with ground truth and wrong with what was retrieved, else its first.
    """
    scores = scores_by_setting(judged[judged["model"] == model])
    odd = (scores["gt_rag"] > 0) & (scores["retrieved_rag"] == 0)
    ranked = scores.assign(odd=odd).sort_values("odd", ascending=False, kind="stable")
    first = ranked.drop_duplicates("scenario").set_index("scenario")["query_id"]
    return [str(first[scenario]) for scenario in QUESTIONS if scenario in first]


def scores_by_setting(judged: pd.DataFrame) -> pd.DataFrame:
    """One row a model and question: model, query_id, group, scenario, stratum, and the score in
    each of `SETTINGS`.
    """
    rows = judged[judged["setting"].isin(list(SETTINGS))]
    keys = ["model", "query_id", "group", "scenario", "stratum"]
    wide = rows.groupby([*keys, "setting"], sort=False)["score"].mean().unstack("setting")
    return wide.reindex(columns=list(SETTINGS)).reset_index()
