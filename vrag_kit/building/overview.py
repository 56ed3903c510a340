"""Where the questions went, and how the coarse filter did, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.intervals import estimate
from vrag_kit.building.deciding import FATES, Decision
from vrag_kit.building.log import AnnotationLog

_DECISION_COLUMNS = [
    "question_id",
    "species",
    "question",
    "fate",
    "why",
    "estimated",
    "clue_rate",
    "clues",
    "images",
    "annotators",
    "answers",
]


def decisions_table(decisions: Sequence[Decision]) -> pd.DataFrame:
    """One row a question, in order.

    Columns question_id, species, question, fate, why, estimated, clue_rate (both in [0,
    1]), clues, images, annotators (who finished it), answers (both joined by " | ").
    """
    return pd.DataFrame([_row(each) for each in decisions], columns=_DECISION_COLUMNS)


def _row(decision: Decision) -> dict[str, object]:
    return {
        "question_id": decision.question_id,
        "species": decision.species,
        "question": decision.question,
        "fate": decision.fate,
        "why": decision.why,
        "estimated": decision.estimated,
        "clue_rate": decision.clue_rate,
        "clues": sum(decision.labels.values()),
        "images": len(decision.labels),
        "annotators": " | ".join(decision.annotators),
        "answers": " | ".join(decision.answers),
    }


def suggestions(logs: Sequence[AnnotationLog]) -> pd.DataFrame:
    """The new questions that annotators suggest: annotator, species, instead_of (the
    question they looked at), suggestion. Empty when there are none.
    """
    rows = []
    for log in logs:
        for vote in log.votes.values():
            if vote.suggestion.strip():
                rows.append((log.annotator, vote.species, vote.question, vote.suggestion))
    return pd.DataFrame(rows, columns=["annotator", "species", "instead_of", "suggestion"])


def funnel(species: int, chosen: int, decisions: Sequence[Decision]) -> pd.DataFrame:
    """What is left after each step, of so many species of which so many were chosen:
    columns step, what ("species" or "questions"), n.
    """
    ranks = [FATES.index(each.fate) for each in decisions]
    rows = [
        ("with a folder", "species", species),
        ("chosen", "species", chosen),
        ("written", "questions", len(ranks)),
    ]
    for step, fate in (
        ("past the screen", "dropped before"),
        ("past the coarse filter", "dropped by the filter"),
        ("annotated", "waits for adjudication"),
        ("kept", "too common"),
    ):
        left = sum(rank < FATES.index(fate) for rank in ranks)
        rows.append((step, "questions", left))
    return pd.DataFrame(rows, columns=["step", "what", "n"])


def filter_beside_annotators(presence: pd.DataFrame, decisions: Sequence[Decision]) -> pd.DataFrame:
    """How the coarse filter (`ask_presence`) does on images that annotators labelled,
    with 95 % intervals over species.

    Columns metric, value, ci_low, ci_high, n (images), n_failed (unjudged). "clues
    found" is the share of clues that it says are visible, "false alarms" that of other
    images, both in [0, 1]; NaN where there are none.
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
