"""Readings of "partially correct as wildcard match, macro-F1 0.92", by which the paper compares its
judge with people on 200 answers (Table 9).
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.analysis.agreement import AS_THEY_ARE
from vrag_kit.errors import VragError
from vrag_kit.judging.human_labels import LABEL_SCORES, score_of_label

READINGS = {
    **AS_THEY_ARE,
    "any partial matches; kept as the labeller's label": "tt tt tf  pp pp pp  ft ff ff",
    "any partial matches; kept as the judge's label": "tt pp tf  tt pp ff  ft pp ff",
    "any partial matches; kept as the other label": "tt tt tf  tt pp ff  ft ff ff",
    "any partial matches; both partial left out": "tt tt tf  tt -- ff  ft ff ff",
    "any partial left out": "tt -- tf  -- -- --  ft -- ff",
    "the judge's partial matches": "tt tt tf  pt pp pf  ft ff ff",
    "the labeller's partial matches": "tt tp tf  tt pp ff  ft fp ff",
    "the judge's partial matches; the labeller's left out": "tt tt tf  -- -- --  ft ff ff",
    "the labeller's partial matches; the judge's left out": "tt -- tf  tt -- ff  ft -- ff",
    "partial is true": "tt tt tf  tt tt tf  ft ft ff",
    "partial is false": "tt tf tf  ft ff ff  ft ff ff",
}
"""Reading → what each pair of labels counts as (see `agreement`)."""


def expand_confusion(counts: pd.DataFrame) -> pd.DataFrame:
    """Expands a confusion matrix (human, judge, count) to one row per answer: human_label,
    judge_label, score, group.

    The matrix does not record groups, so each answer is its own group. The judge's score is that of
    its label, in [0, 1]. Raises `VragError` for an unknown label.
    """
    if unknown := sorted({*counts["human"], *counts["judge"]} - set(LABEL_SCORES)):
        raise VragError(
            f"found the label {unknown[0]!r} in the confusion matrix, expected"
            f" {', '.join(LABEL_SCORES)}."
        )
    rows = counts.loc[counts.index.repeat(counts["count"]), ["human", "judge"]]
    rows = rows.reset_index(drop=True).add_suffix("_label")
    scores = rows["judge_label"].map(score_of_label)
    return rows.assign(score=scores, group=[f"answer {n}" for n in rows.index])
