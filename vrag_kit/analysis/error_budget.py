"""Where the points are lost between the question and the verdict: retrieval, company,
eyesight, or the judge.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.types import Benchmark

CAUSES = (
    "no clue retrieved",
    "clue misread even alone",
    "clue ignored or contradicted",
    "judge in doubt",
)


def first_clue_rank(benchmark: Benchmark, run: pd.DataFrame) -> pd.Series:
    """Rank of each query's best ranked clue, from 1; NaN where the run has none.

    Indexed by query_id.
    """
    relevant = [
        doc_id in benchmark.relevant(query_id)
        for query_id, doc_id in zip(run["query_id"], run["doc_id"], strict=True)
    ]
    return (
        run[relevant]
        .groupby("query_id")["rank"]
        .min()
        .reindex(list(benchmark.queries))
        .astype(float)
    )


def error_budget(
    retrieved: pd.DataFrame, alone: pd.DataFrame, benchmark: Benchmark, run: pd.DataFrame
) -> pd.DataFrame:
    """The points that each top-k answer lost, by cause: model, k, query_id, cause,
    value in [0, 1]; over the causes they add up to 1 − score.

    `retrieved` are the judged top-k answers, `alone` those to the best ranked clue
    alone (`first_clue`). In this order, a lost point is the judge's where its verdicts
    on one of the two answers differ (which takes judge_samples > 1), the retriever's
    where no clue is among the first k; what is lost with that clue alone too is
    misread; the rest, at most all, was lost in company. A question for which a verdict
    is missing at any k, or of the clue alone, is NaN at every k: so all k are about the
    same questions, and what is left out is counted.
    """
    keys = ["model", "k", "query_id"]
    table = (
        retrieved[retrieved["setting"] == "top_k"]
        .groupby(keys, sort=False)
        .agg(score=("score", "mean"), spread=("spread", "max"))
        .reset_index()
    )
    single = (
        alone.groupby(["model", "query_id"], sort=False)
        .agg(alone=("score", "mean"), spread_alone=("spread", "max"))
        .reset_index()
    )
    table = table.merge(single, on=["model", "query_id"], how="left").assign(
        rank=lambda frame: frame["query_id"].map(first_clue_rank(benchmark, run))
    )
    lost, there = 1 - table["score"], table["rank"] <= table["k"]
    doubt = (table["spread"] > 0) | (there & (table["spread_alone"] > 0))
    lost_alone = 1 - table["alone"]  # NaN where the clue alone has no verdict: then nobody knows
    misread = pd.concat([lost, lost_alone], axis=1).min(axis=1, skipna=False).where(there, 0.0)
    shares = {
        "judge in doubt": lost.where(doubt, 0.0),
        "no clue retrieved": lost.where(~there & ~doubt, 0.0),
        "clue misread even alone": misread.where(~doubt, 0.0),
        "clue ignored or contradicted": (lost - misread).where(there & ~doubt, 0.0),
    }
    unknown = (
        (lost.isna() | (there & ~doubt & table["alone"].isna()))
        .groupby([table["model"], table["query_id"]])
        .transform("any")
    )
    return pd.concat(
        [table[keys].assign(cause=cause, value=shares[cause].mask(unknown)) for cause in CAUSES],
        ignore_index=True,
    )


def mean_budget(budget: pd.DataFrame, groups: Mapping[str, str], *, seed: int = 0) -> pd.DataFrame:
    """Mean points lost a question to each cause: model, k, cause, metric, value in [0,
    1], ci_low, ci_high, n, n_failed.
    """
    return summarise(budget, groups, ["model", "k", "cause"], seed=seed).assign(metric="lost")


def accuracy_given_clue(
    retrieved: pd.DataFrame, benchmark: Benchmark, run: pd.DataFrame, *, seed: int = 0
) -> pd.DataFrame:
    """Accuracy apart for questions with and without a clue among the first k: model, k,
    clue ("yes" or "no"), metric, value in [0, 1], ci_low, ci_high, n, n_failed.

    The two sets of questions differ, and change with k: with a clue are the easier ones
    for the retriever, which may be easier for the model too.
    """
    rows = retrieved[retrieved["setting"] == "top_k"]
    there = rows["query_id"].map(first_clue_rank(benchmark, run)) <= rows["k"]
    means = (
        rows.assign(clue=np.where(there, "yes", "no"))
        .groupby(["model", "k", "clue", "query_id"], sort=False)["score"]
        .mean()
        .rename("value")
        .reset_index()
    )
    return summarise(means, benchmark.groups, ["model", "k", "clue"], seed=seed).assign(
        metric="accuracy"
    )
