"""Answers that are wrong although the model saw what it needed: one row a case, to be
read one by one (Visual-RAG, appendix F).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.types import Benchmark, Context

KINDS = ("right", "partly right", "declined", "wrong")
COLUMNS = [
    "model",
    "query_id",
    "setting",
    "k",
    "draw",
    "question",
    "references",
    "answer",
    "kind",
    "verdict",
    "score",
    "doc_ids",
]


def kind_of(score: pd.Series, abstained: pd.Series) -> pd.Series:
    """One of `KINDS` for every judged answer; missing where there is no verdict."""
    kinds = (
        pd.Series("wrong", index=score.index)
        .mask(abstained > 0, "declined")
        .mask(score > 0, "partly right")
        .mask(score == 1, "right")
    )
    return kinds.where(score.notna())


def error_cases(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    contexts: Iterable[Context],
    *,
    setting: str = "gt_clue",
) -> pd.DataFrame:
    """The answers of a setting that are not fully right, the wrong ones first: the
    columns `COLUMNS`; empty when all are right.

    references are the accepted answers, doc_ids the images as shown. Equal answers of a
    model to the same question are one case (its first draw). Failed answers are no
    cases: they are counted elsewhere, with their reason.
    """
    shown = {(c.query_id, c.k, c.draw): c.doc_ids for c in contexts if c.setting == setting}
    rows = judged[(judged["setting"] == setting) & (judged["score"] < 1)].drop_duplicates(
        ["model", "query_id", "answer"]
    )
    rows = rows.assign(
        kind=kind_of(rows["score"], rows["abstained"]),
        question=[benchmark.queries[query_id].text for query_id in rows["query_id"]],
        references=[
            " | ".join(benchmark.queries[query_id].answers) for query_id in rows["query_id"]
        ],
        doc_ids=[shown[key] for key in zip(rows["query_id"], rows["k"], rows["draw"], strict=True)],
    )
    order = rows["kind"].map({"wrong": 0, "declined": 1, "partly right": 2})
    return (
        rows.assign(_order=order)
        .sort_values(["_order", "query_id", "model"], kind="stable")[COLUMNS]
        .reset_index(drop=True)
    )


def kinds_of_answers(
    judged: pd.DataFrame, groups: Mapping[str, str], *, seed: int = 0
) -> pd.DataFrame:
    """Share of the judged answers that are right, partly right, declined or wrong:
    model, setting, k, kind, metric, value in [0, 1], ci_low, ci_high, n.

    The shares of an arm add up to 1. Intervals are over groups, with the draws of a
    query kept together.
    """
    known = judged[judged["score"].notna()]
    kinds = kind_of(known["score"], known["abstained"])
    tables = []
    for kind in KINDS:
        shares = (
            known.assign(value=(kinds == kind).astype(float))
            .groupby(["model", "setting", "k", "query_id"], sort=False)["value"]
            .mean()
            .reset_index()
        )
        tables.append(
            summarise(shares, groups, ["model", "setting", "k"], seed=seed)
            .drop(columns="n_failed")
            .assign(kind=kind, metric="share")
        )
    return pd.concat(tables, ignore_index=True)
