"""Correlation of ROUGE-1 recall with the judge's score, by answer and by arm (Visual-RAG appendix
E, Tables 14 and 16).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.tables import require_columns


def rouge_score_correlation(judged: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Rank correlation of rouge and score over the answers of every model: model,
    measure ("spearman", "kendall"), value in [−1, 1], ci_low, ci_high, n, n_failed.

    Intervals are over groups. n counts answers, n_failed those without a score or
    without ROUGE. NaN where one of the two never changes.
    """
    require_columns(judged, ["model", "group", "score"], "rouge_score_correlation")
    rows = []
    for model, part in judged.groupby("model", sort=False):
        for measure in ("spearman", "kendall"):
            found = association(
                part["rouge"], part["score"], part["group"], measure=measure, seed=seed
            )
            rows.append((model, measure, *found))
    columns = ["model", "measure", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def rouge_mean_correlation(arms: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Spearman's ρ of mean accuracy and mean ROUGE: `by`, value in [−1, 1], n arms.

    `by` ["model"] correlates within models, ["setting", "k"] across them.

    `arms` has the columns model, setting, k, metric ("accuracy", "rouge") and value, one row an arm
    and metric. NaN for fewer than three arms, and where a mean never changes. No interval: the arms
    share their questions, and published means do not account for that.
    """
    wide = arms.pivot_table(
        index=["model", "setting", "k"], columns="metric", values="value", sort=False
    )
    rows = []
    for key, part in wide.reset_index().groupby(list(by), sort=False):
        rows.append((*key, _rank_correlation(part), len(part)))
    return pd.DataFrame(rows, columns=[*by, "value", "n"])


def _rank_correlation(part: pd.DataFrame) -> float:
    if part["accuracy"].nunique() < 2 or part["rouge"].nunique() < 2:
        return float("nan")
    return float(part["accuracy"].corr(part["rouge"], method="spearman", min_periods=3))
