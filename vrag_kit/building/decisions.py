"""Decide from the annotators' votes which questions enter the benchmark, and tabulate it.

The paper's rule is 0 < clue rate ≤ 0.25 (Visual-RAG, section 4.2, stage 2).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import estimate
from vrag_kit.building.agreement import (
    accepted_answers,
    answers_differ,
    finished_votes,
    image_labels,
    split_answers,
)
from vrag_kit.building.annotations import Annotations, Vote
from vrag_kit.building.visibility import MOST_CLUES

STATUSES = (
    "kept",
    "too_common",
    "no_clue",
    "awaiting_adjudication",
    "skipped",
    "not_annotated",
    "dropped_by_filter",
    "dropped_earlier",
)
"""Statuses of a question; later ones are decided earlier."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The status of one question, with its labels and accepted answers."""

    question_id: str
    species: str
    question: str
    status: str  # one of STATUSES
    reason: str  # in words; "" for one that is kept
    estimated_clue_rate: float  # by the coarse filter, in [0, 1]; NaN where it judged none
    labels: Mapping[str, int]  # image → 1 (clue) or 0; empty until people have decided
    answers: tuple[str, ...]  # accepted answers, in the order in which they were given
    annotators: tuple[str, ...]  # who finished it

    @property
    def clue_rate(self) -> float:
        """Share of clues among the labelled images, in [0, 1]; NaN without any."""
        return sum(self.labels.values()) / len(self.labels) if self.labels else np.nan


def decide_questions(
    questions: pd.DataFrame,
    annotations: Sequence[Annotations],
    adjudicated: Annotations | None = None,
    *,
    limit: float = MOST_CLUES,
) -> list[Decision]:
    """Return the decision on each question, in the order of `questions`. `questions` are as
    `coarse_filter` returns them, `annotations` as `read_annotation_files` does.

    A question is labelled by the annotators who finished it, on the images that all of them saw.
    It is in dispute where they differ on an image or in the answer, and where one skipped it
    and ticked otherwise. Then it waits until the adjudicator has decided every disputed image, and
    the adjudicator's ticks and answers hold. Where annotators agree, all their answers are
    accepted. A question is kept when 0 < clue rate ≤ `limit`. A question that was dropped before
    stays dropped, but carries its labels if it has any.
    """
    labels = image_labels(annotations)
    decisions = []
    for row in questions.to_dict("records"):
        question_id = row["question_id"]
        images = labels[labels["question_id"] == question_id]
        votes = finished_votes(annotations, question_id)
        ruling = None
        if adjudicated:
            ruling = finished_votes([adjudicated], question_id).get(adjudicated.annotator)
        every = [each.votes[question_id] for each in annotations if question_id in each.votes]
        skipped = any(vote.status == "skipped" for vote in every)
        decisions.append(_decide(row, images, votes, ruling, skipped=skipped, limit=limit))
    return decisions


def _decide(
    row: Mapping[Hashable, Any],  # of the questions, as pandas types it
    images: pd.DataFrame,
    votes: Mapping[str, Vote],
    ruling: Vote | None,
    *,
    skipped: bool,
    limit: float,
) -> Decision:
    """The decision on one row, from the images of `image_labels` and the votes of all who
    finished it.
    """
    disputed = images.loc[images["disputed"], "doc_id"].tolist()
    differ = answers_differ(votes)
    if not (disputed or differ):
        ruling = None
    ruled = ruling.images if ruling else {}
    unruled = [doc_id for doc_id in disputed if doc_id not in ruled]
    waits = ""
    if unruled:
        waits = f"annotators differ on {len(unruled)} images that are not ruled on"
    elif differ and ruling is None:
        waits = "annotators differ in the answer"
    answers = accepted_answers(votes)
    if ruling and ruling.answer.strip():
        answers = split_answers(ruling.answer)
    known = images.dropna(subset="label")
    agreed = dict(zip(known["doc_id"], known["label"].astype(int), strict=True))
    labels = dict(sorted({**agreed, **ruled}.items()))
    decision = Decision(
        question_id=row["question_id"],
        species=row["species"],
        question=row["question"],
        status="kept",
        reason="",
        estimated_clue_rate=row["estimated_clue_rate"],
        labels={} if waits else labels,
        answers=answers,
        annotators=tuple(votes),
    )
    status, reason = _status(decision, waits, limit, skipped=skipped)
    if row["dropped"]:
        filtered = row["n_judged"] + row["n_unjudged"] > 0
        status, reason = "dropped_by_filter" if filtered else "dropped_earlier", row["dropped"]
    return replace(decision, status=status, reason=reason)


def _status(decision: Decision, waits: str, limit: float, *, skipped: bool) -> tuple[str, str]:
    """Status and reason of a question that was not dropped: the first that holds."""
    rate = decision.clue_rate
    finished = bool(decision.annotators)
    checks = [
        (skipped and not finished, "skipped", "too many of the first images show it"),
        (not finished, "not_annotated", "nobody has finished it"),
        (bool(waits), "awaiting_adjudication", waits),
        (not decision.labels, "not_annotated", "no image was shown to all who finished it"),
        (rate == 0, "no_clue", "no image shows it"),
        (rate > limit, "too_common", f"the clue rate {rate:.1%} is above {limit:.0%}"),
        (not decision.answers, "awaiting_adjudication", "nobody gave an answer"),
    ]
    return next(((status, reason) for holds, status, reason in checks if holds), ("kept", ""))


def decisions_table(decisions: Sequence[Decision]) -> pd.DataFrame:
    """Return the decisions as a table, one row per question, in order.

    Columns question_id, species, question, status, reason, estimated_clue_rate, clue_rate (both in
    [0, 1]), n_clues, n_images, annotators (who finished it), answers (both joined by " | ").
    """
    names = ["question_id", "species", "question", "status", "reason", "estimated_clue_rate"]
    table = pd.DataFrame([[getattr(each, name) for name in names] for each in decisions])
    table.columns = names
    return table.assign(
        clue_rate=[each.clue_rate for each in decisions],
        n_clues=[sum(each.labels.values()) for each in decisions],
        n_images=[len(each.labels) for each in decisions],
        annotators=[" | ".join(each.annotators) for each in decisions],
        answers=[" | ".join(each.answers) for each in decisions],
    )


def suggested_questions(annotations: Sequence[Annotations]) -> pd.DataFrame:
    """Return the new questions that annotators suggest; empty when there are none.
    Columns annotator, species, instead_of (the question on their screen), suggestion.
    """
    rows = []
    for each in annotations:
        for vote in each.votes.values():
            if vote.suggestion.strip():
                rows.append((each.annotator, vote.species, vote.question, vote.suggestion))
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
    rows: list[tuple[object, ...]] = []
    for each in decisions:
        rows += [(each.question_id, each.species, *pair) for pair in each.labels.items()]
    table = pd.DataFrame(rows, columns=["question_id", "species", "doc_id", "label"])
    judged = presence.merge(table.drop_duplicates(), on=["question_id", "doc_id"])
    rows = []
    for metric, label in (("clues found", 1), ("false alarms", 0)):
        part = judged[judged["label"] == label]
        found = estimate(part["visible"].to_numpy(float), part["species"].tolist())
        rows.append((metric, found.value, found.ci_low, found.ci_high, found.n, found.n_failed))
    return pd.DataFrame(rows, columns=["metric", "value", "ci_low", "ci_high", "n", "n_failed"])
