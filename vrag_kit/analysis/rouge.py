"""ROUGE-1 recall beside the judge (Visual-RAG appendix E, Tables 14 and 16): does the
one follow the other, answer by answer and arm by arm?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.association import association


def rouge_follows(
    judged: pd.DataFrame, groups: Mapping[str, str], *, seed: int = 0
) -> pd.DataFrame:
    """Rank correlation of rouge and score over the answers of every model: model,
    measure ("spearman", "kendall"), value in [−1, 1], ci_low, ci_high, n, n_failed.

    Intervals are over groups. n counts answers, n_failed those without a score or
    without ROUGE. NaN where one of the two never changes.
    """
    rows = []
    for model, part in judged.groupby("model", sort=False):
        clusters = [groups[query_id] for query_id in part["query_id"]]
        for measure in ("spearman", "kendall"):
            found = association(part["rouge"], part["score"], clusters, measure=measure, seed=seed)
            rows.append(
                (model, measure, found.value, found.ci_low, found.ci_high, found.n, found.n_failed)
            )
    return pd.DataFrame(
        rows, columns=["model", "measure", "value", "ci_low", "ci_high", "n", "n_failed"]
    )


def arm_correlation(arms: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Spearman's ρ of mean accuracy and mean ROUGE: `by`, value in [−1, 1], n arms.

    `by` ["model"] correlates within models, ["setting", "k"] across them.

    `arms` has the columns model, setting, k, metric ("accuracy", "rouge") and value,
    one row an arm and metric. NaN for fewer than three arms, and where a mean never
    changes. No interval: the arms share their questions, and printed means tell nothing
    of that.
    """
    wide = arms.pivot_table(
        index=["model", "setting", "k"], columns="metric", values="value", sort=False
    ).reset_index()
    rows = [
        (*key, _rank_correlation(part), len(part))
        for key, part in wide.groupby(list(by), sort=False)
    ]
    return pd.DataFrame(rows, columns=[*by, "value", "n"])


def _rank_correlation(part: pd.DataFrame) -> float:
    varies = part["accuracy"].nunique() > 1 and part["rouge"].nunique() > 1
    return (
        part["accuracy"].corr(part["rouge"], method="spearman", min_periods=3)
        if varies
        else float("nan")
    )
