"""Where the points are lost between the question and the verdict: retrieval, company,
eyesight, or the judge.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.analysis.intervals import summarise
from vrag_kit.frames import JUDGED, RUN
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark

CAUSES = (
    "no clue retrieved",
    "clue misread even alone",
    "clue ignored or contradicted",
    "judge in doubt",
)
_KEYS = ["model", "k", "query_id", "group"]


def first_clue_rank(benchmark: Benchmark, run: pd.DataFrame) -> pd.Series:
    """Rank of each query's best ranked clue, from 1; NaN where the run has none.

    Indexed by query_id.
    """
    RUN.check(run, ["query_id", "doc_id", "rank"], "first_clue_rank")
    relevant = [
        doc_id in benchmark.relevant(query_id)
        for query_id, doc_id in zip(run["query_id"], run["doc_id"], strict=True)
    ]
    best = run[relevant].groupby("query_id")["rank"].min()
    return best.reindex(list(benchmark.queries)).astype(float)


def error_budget(
    retrieved: pd.DataFrame, alone: pd.DataFrame, benchmark: Benchmark, run: pd.DataFrame
) -> pd.DataFrame:
    """The points that each top-k answer lost, by cause: model, k, query_id, group,
    cause, value; over the causes they add up to the scale's best − score.

    `retrieved` are the judged top-k answers, `alone` those to the best ranked clue
    alone (`first_clue`). In this order, a lost point is the judge's where its verdicts
    on one of the two answers differ (which takes judge_samples > 1), the retriever's
    where no clue is among the first k; what is lost with that clue alone too is
    misread; the rest, at most all, was lost in company. A question for which a verdict
    is missing at any k, or of the clue alone, is NaN at every k: so all k are about the
    same questions, and what is left out is counted.
    """
    JUDGED.check(retrieved, ["setting", *_KEYS, "score"], "error_budget")
    scale, ranks = scale_of(retrieved), first_clue_rank(benchmark, run)
    table = _scores(retrieved[retrieved["setting"] == "top_k"], _KEYS)
    single = _scores(alone, ["model", "query_id"]).rename(
        columns={"score": "alone", "spread": "spread_alone"}
    )
    table = table.merge(single, on=["model", "query_id"], how="left")
    lost, there = scale.best - table["score"], table["query_id"].map(ranks) <= table["k"]
    doubt = (table["spread"] > 0) | (there & (table["spread_alone"] > 0))
    lost_alone = scale.best - table["alone"]  # NaN without a verdict: then nobody knows
    misread = pd.concat([lost, lost_alone], axis=1).min(axis=1, skipna=False).where(there, 0.0)
    shares = {
        "judge in doubt": lost.where(doubt, 0.0),
        "no clue retrieved": lost.where(~there & ~doubt, 0.0),
        "clue misread even alone": misread.where(~doubt, 0.0),
        "clue ignored or contradicted": (lost - misread).where(there & ~doubt, 0.0),
    }
    unknown = lost.isna() | (there & ~doubt & table["alone"].isna())
    unknown = unknown.groupby([table["model"], table["query_id"]]).transform("any")
    parts = [
        table[_KEYS].assign(cause=cause, value=shares[cause].mask(unknown)) for cause in CAUSES
    ]
    return pd.concat(parts, ignore_index=True).assign(worst=0.0, best=scale.width)


def _scores(judged: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean score and largest spread of the answers to each query."""
    queries = judged.groupby(by, sort=False)
    return queries.agg(score=("score", "mean"), spread=("spread", "max")).reset_index()


def mean_budget(budget: pd.DataFrame) -> pd.DataFrame:
    """Mean points lost a question to each cause: model, k, cause, metric, value, ci_low,
    ci_high, n, n_failed.
    """
    return summarise(budget, ["model", "k", "cause"]).assign(metric="lost")


def accuracy_given_clue(
    retrieved: pd.DataFrame, benchmark: Benchmark, run: pd.DataFrame
) -> pd.DataFrame:
    """Accuracy apart for questions with and without a clue among the first k: model, k,
    clue ("yes" or "no"), metric, value on the judge's scale, ci_low, ci_high, n,
    n_failed.

    The two sets of questions differ, and change with k: with a clue are the easier ones
    for the retriever, which may be easier for the model too.
    """
    JUDGED.check(retrieved, ["setting", *_KEYS, "score"], "accuracy_given_clue")
    rows, scale = retrieved[retrieved["setting"] == "top_k"], scale_of(retrieved)
    there = rows["query_id"].map(first_clue_rank(benchmark, run)) <= rows["k"]
    rows = rows.assign(clue=np.where(there, "yes", "no"))
    queries = rows.groupby(["model", "k", "clue", "query_id", "group"], sort=False)
    means = queries["score"].mean().rename("value").reset_index()
    means = means.assign(worst=scale.worst, best=scale.best)
    return summarise(means, ["model", "k", "clue"]).assign(metric="accuracy")
