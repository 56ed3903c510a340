"""From votes to a benchmark: agreement of annotators, the disputes that an adjudicator must decide,
and which questions enter (Visual-RAG, section 4.2, stage 2).

The paper's rule is 0 < clue rate ≤ 0.25.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.estimates import estimate
from vrag_kit.building.annotations import Annotations, Vote
from vrag_kit.building.visibility import MOST_CLUES

AGREED_CLUES = 9
"""Maximum number of undisputed clues that an adjudicator's panel displays per question."""
_AGREEMENT = "first second kappa ci_low ci_high n questions both only_first only_second neither"

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
_STEPS = {
    "passed screening": "dropped_earlier",
    "passed coarse filter": "dropped_by_filter",
    "annotated": "awaiting_adjudication",
    "kept": "too_common",
}
"""Step → the first status of a question that did not pass it."""


@dataclass(frozen=True, slots=True)
class Dispute:
    """What an adjudicator must decide about a question."""

    images: tuple[str, ...] = ()  # doc_ids that the panel displays
    ticked: frozenset[str] = frozenset()  # images that are ticked to begin with
    answer: str = ""  # the proposed answers


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
    clue_rate: float  # share of clues among the labelled images, in [0, 1]; NaN without any


def annotator_agreement(annotations: Sequence[Annotations], *, seed: int = 0) -> pd.DataFrame:
    """Return Cohen's kappa of every two annotators, with a 95 % interval over species.
    It covers the images of the questions that both finished.

    Columns first, second, kappa, ci_low, ci_high (in [−1, 1]; NaN as in `association`), n (images),
    questions, both, only_first, only_second, neither (images by who ticked them). Clues are rare:
    two annotators without a common tick still agree on most images. Kappa corrects for that. Empty
    for fewer than two annotators.
    """
    rows = []
    for first, second in combinations(annotations, 2):
        pairs = _labels(first).merge(_labels(second), on=["question_id", "doc_id"])
        x, y = pairs["label_x"], pairs["label_y"]
        kappa = association(x, y, pairs["species_x"], measure="kappa", seed=seed)
        interval = (kappa.value, kappa.ci_low, kappa.ci_high, kappa.n)
        ticks = [(x & y).sum(), (x > y).sum(), (x < y).sum(), (x + y == 0).sum()]
        counts = map(int, [pairs["question_id"].nunique(), *ticks])
        rows.append((first.annotator, second.annotator, *interval, *counts))
    return pd.DataFrame(rows, columns=_AGREEMENT.split())


def _labels(annotations: Annotations) -> pd.DataFrame:
    """The labels of the questions that an annotator finished, one row an image."""
    rows = []
    for each in annotations.votes.values():
        if each.status == "done":
            rows += [(each.question_id, each.species, *pair) for pair in each.images.items()]
    return pd.DataFrame(rows, columns=["question_id", "species", "doc_id", "label"])


def finished_votes(annotations: Sequence[Annotations], question_id: str) -> dict[str, Vote]:
    """Return annotator → vote, for the annotators who finished the question."""
    votes = {each.annotator: each.votes.get(question_id) for each in annotations}
    return {name: vote for name, vote in votes.items() if vote and vote.status == "done"}


def image_labels(
    annotations: Sequence[Annotations], question_id: str
) -> tuple[dict[str, int], list[str]]:
    """Return (label by doc_id, disputed doc_ids) of a question, both sorted; empty if nobody has
    finished it.

    The votes of annotators who finished or skipped it count. An image is disputed where they
    differ; that an annotator finished the question without seeing it counts as no clue. A label is
    1 (clue) or 0; an image that is disputed, or not seen by all who finished, has none.
    """
    finished = finished_votes(annotations, question_id)
    every = [each.votes[question_id] for each in annotations if question_id in each.votes]
    votes = [vote for vote in every if vote.status != "open"] if finished else []
    labels, disputed = {}, []
    for doc_id in sorted(set().union(*(vote.images for vote in votes))):
        found = {vote.images[doc_id] for vote in votes if doc_id in vote.images}
        is_unseen = any(doc_id not in vote.images for vote in finished.values())
        if len(found | {0} if is_unseen else found) > 1:
            disputed.append(doc_id)
        elif not is_unseen:
            labels[doc_id] = found.pop()
    return labels, disputed


def find_disputes(annotations: Sequence[Annotations]) -> dict[str, Dispute]:
    """Return question_id → dispute, of the questions on which annotators differ.
    Disputed images come first, then up to `AGREED_CLUES` undisputed clues, ticked.
    """
    disputes = {}
    for question_id in dict.fromkeys(chain.from_iterable(each.votes for each in annotations)):
        labels, disputed = image_labels(annotations, question_id)
        finished = finished_votes(annotations, question_id)
        if disputed or answers_differ(finished):
            agreed = [doc_id for doc_id, label in labels.items() if label][:AGREED_CLUES]
            answer = " | ".join(accepted_answers(finished))
            disputes[question_id] = Dispute((*disputed, *agreed), frozenset(agreed), answer)
    return disputes


def answers_differ(finished: Mapping[str, Vote]) -> bool:
    """Return whether annotators who ticked clues accept different answers."""
    answers = set()
    for vote in finished.values():
        if vote.clues:
            answers.add(frozenset(answer.lower() for answer in split_answers(vote.answer)))
    return len(answers) > 1


def accepted_answers(finished: Mapping[str, Vote]) -> tuple[str, ...]:
    """Return the distinct answers of the annotators who ticked clues."""
    return split_answers("|".join(vote.answer for vote in finished.values() if vote.clues))


def split_answers(text: str) -> tuple[str, ...]:
    """Split a text into answers at "|", in order, without duplicates that differ in case only.
    Blanks and a full stop around them are stripped.
    """
    unique: dict[str, str] = {}
    for piece in text.split("|"):
        answer = " ".join(piece.split()).rstrip(" .")
        unique.setdefault(answer.lower(), answer)
    return tuple(answer for answer in unique.values() if answer)


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
    return [_decide(row, annotations, adjudicated, limit) for row in questions.to_dict("records")]


def _decide(
    row: Mapping[Hashable, Any],  # of the questions, as pandas types it
    annotations: Sequence[Annotations],
    adjudicated: Annotations | None,
    limit: float,
) -> Decision:
    question_id = row["question_id"]
    labels, disputed = image_labels(annotations, question_id)
    votes = finished_votes(annotations, question_id)
    differ = answers_differ(votes)
    ruling = None
    if adjudicated and (disputed or differ):
        ruling = finished_votes([adjudicated], question_id).get(adjudicated.annotator)
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
    labels = {} if waits else dict(sorted({**labels, **ruled}.items()))
    rate = sum(labels.values()) / len(labels) if labels else np.nan
    skipped = any(
        each.votes[question_id].status == "skipped"
        for each in annotations
        if question_id in each.votes
    )
    was_filtered = row["n_judged"] + row["n_unjudged"] > 0
    checks = [
        (row["dropped"] and was_filtered, "dropped_by_filter", row["dropped"]),
        (row["dropped"], "dropped_earlier", row["dropped"]),
        (skipped and not votes, "skipped", "too many of the first images show it"),
        (not votes, "not_annotated", "nobody has finished it"),
        (bool(waits), "awaiting_adjudication", waits),
        (not labels, "not_annotated", "no image was shown to all who finished it"),
        (rate == 0, "no_clue", "no image shows it"),
        (rate > limit, "too_common", f"the clue rate {rate:.1%} is above {limit:.0%}"),
        (not answers, "awaiting_adjudication", "nobody gave an answer"),
        (True, "kept", ""),
    ]
    status, reason = next((status, reason) for holds, status, reason in checks if holds)
    columns = ("question_id", "species", "question", "estimated_clue_rate")
    given = {name: row[name] for name in columns}
    decided = {"status": status, "reason": reason, "labels": labels, "answers": answers}
    return Decision(**given, **decided, annotators=tuple(votes), clue_rate=rate)


def decisions_table(decisions: Sequence[Decision]) -> pd.DataFrame:
    """Return the decisions as a table, one row per question, in order.

    Columns question_id, species, question, status, reason, estimated_clue_rate, clue_rate (both in
    [0, 1]), n_clues, n_images, annotators (who finished it), answers (both joined by " | ").
    """
    names = ["question_id", "species", "question", "status", "reason", "estimated_clue_rate"]
    rows = [[getattr(each, name) for name in names] for each in decisions]
    return pd.DataFrame(rows, columns=names).assign(
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
    rows = [("with images", "species", species), ("chosen", "species", chosen)]
    rows.append(("written", "questions", len(ranks)))
    for step, status in _STEPS.items():
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
