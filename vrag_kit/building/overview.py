"""Tables of the question funnel, the decisions, and the coarse filter's accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import estimate
from vrag_kit.building.annotations import AnnotationLog
from vrag_kit.building.decisions import STATUSES, Decision

_DECISION_COLUMNS = [
    "question_id",
    "species",
    "question",
    "status",
    "reason",
    "estimated_clue_rate",
    "clue_rate",
    "n_clues",
    "n_images",
    "annotators",
    "answers",
]


def decisions_table(decisions: Sequence[Decision]) -> pd.DataFrame:
    """Return the decisions as a table, one row per question, in order.

    Columns question_id, species, question, status, reason, estimated_clue_rate, clue_rate (both in
    [0, 1]), n_clues, n_images, annotators (who finished it), answers (both joined by " | ").
    """
    return pd.DataFrame([_row(each) for each in decisions], columns=_DECISION_COLUMNS)


def _row(decision: Decision) -> dict[str, object]:
    return {
        "question_id": decision.question_id,
        "species": decision.species,
        "question": decision.question,
        "status": decision.status,
        "reason": decision.reason,
        "estimated_clue_rate": decision.estimated_clue_rate,
        "clue_rate": decision.clue_rate,
        "n_clues": sum(decision.labels.values()),
        "n_images": len(decision.labels),
        "annotators": " | ".join(decision.annotators),
        "answers": " | ".join(decision.answers),
    }


def suggested_questions(logs: Sequence[AnnotationLog]) -> pd.DataFrame:
    """Return the new questions that annotators suggest; empty when there are none.
    Columns annotator, species, instead_of (the question on their screen), suggestion.
    """
    rows = []
    for log in logs:
        for vote in log.votes.values():
            if vote.suggestion.strip():
                rows.append((log.annotator, vote.species, vote.question, vote.suggestion))
    return pd.DataFrame(rows, columns=["annotator", "species", "instead_of", "suggestion"])


def question_funnel(species: int, chosen: int, decisions: Sequence[Decision]) -> pd.DataFrame:
    """Return how many species and questions are left after each step.
    Columns step, unit_of_n ("species" or "questions"), n. `species` and `chosen` are counts.
    """
    ranks = [STATUSES.index(each.status) for each in decisions]
    rows = [
        ("with images", "species", species),
        ("chosen", "species", chosen),
        ("written", "questions", len(ranks)),
    ]
    for step, status in (
        ("passed screening", "dropped_earlier"),
        ("passed coarse filter", "dropped_by_filter"),
        ("annotated", "awaiting_adjudication"),
        ("kept", "too_common"),
    ):
        left = sum(rank < STATUSES.index(status) for rank in ranks)
        rows.append((step, "questions", left))
    return pd.DataFrame(rows, columns=["step", "unit_of_n", "n"])


def filter_vs_annotators(presence: pd.DataFrame, decisions: Sequence[Decision]) -> pd.DataFrame:
    """Evaluate the coarse filter (`detect_feature`) on images that annotators labelled.
    Intervals are 95 %, over species.

    Columns metric, value, ci_low, ci_high, n (images), n_failed (unjudged). "clues found" is the
    share of clues that it calls visible, "false alarms" that of other images, both in [0, 1]; NaN
    where there are none.
    """
    species = {each.question_id: each.species for each in decisions}
    labels_of = {each.question_id: each.labels for each in decisions}
    pairs = zip(presence["question_id"], presence["doc_id"], strict=True)
    labels = np.array(
        [labels_of.get(question_id, {}).get(doc_id, -1) for question_id, doc_id in pairs]
    )
    rows = []
    for metric, label in (("clues found", 1), ("false alarms", 0)):
        part = presence[labels == label]
        groups = [species[question_id] for question_id in part["question_id"]]
        found = estimate(part["visible"].to_numpy(float), groups)
        rows.append((metric, found.value, found.ci_low, found.ci_high, found.n, found.n_failed))
    return pd.DataFrame(rows, columns=["metric", "value", "ci_low", "ci_high", "n", "n_failed"])
