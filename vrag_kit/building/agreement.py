"""Agreement of annotators, and the disputes that an adjudicator must decide
(Visual-RAG, section 4.2, stage 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.building.annotations import Annotations, Vote

AGREED_CLUES = 9
"""Maximum number of undisputed clues that an adjudicator's panel displays per question."""
_COLUMNS = "first second kappa ci_low ci_high n questions both only_first only_second neither"


@dataclass(frozen=True, slots=True)
class Dispute:
    """What an adjudicator must decide about a question."""

    images: tuple[str, ...] = ()  # doc_ids that the panel displays
    ticked: frozenset[str] = frozenset()  # images that are ticked to begin with
    remarks: Mapping[str, str] = field(default_factory=dict)  # doc_id → the text below it
    answer: str = ""  # the proposed answers


def votes_table(annotations: Sequence[Annotations]) -> pd.DataFrame:
    """Return one row for each annotator, question and labelled image.
    Columns question_id, doc_id, annotator, label (1 clue, 0 none), species, and the annotator's
    status of the question ("open", "done" or "skipped").
    """
    rows = []
    for each in annotations:
        for vote in each.votes.values():
            beside = (each.annotator, vote.species, vote.status)
            rows += [(vote.question_id, name, *beside, vote.images[name]) for name in vote.images]
    columns = ["question_id", "doc_id", "annotator", "species", "status", "label"]
    return pd.DataFrame(rows, columns=columns)


def annotator_agreement(annotations: Sequence[Annotations], *, seed: int = 0) -> pd.DataFrame:
    """Return Cohen's kappa of every two annotators, with a 95 % interval over species.
    It covers the images of the questions that both finished.

    Columns first, second, kappa, ci_low, ci_high (in [−1, 1]; NaN as in `association`), n (images),
    questions, both, only_first, only_second, neither (images by who ticked them). Clues are rare:
    two annotators without a common tick still agree on most images. Kappa corrects for that. Empty
    for fewer than two annotators.
    """
    votes = votes_table(annotations)
    done = votes[votes["status"] == "done"]
    rows = []
    for first, second in combinations(annotations, 2):
        names = (first.annotator, second.annotator)
        one, other = (done[done["annotator"] == name] for name in names)
        pairs = one.merge(other, on=["question_id", "doc_id"])
        x, y = pairs["label_x"], pairs["label_y"]
        kappa = association(x, y, pairs["species_x"], measure="kappa", seed=seed)
        questions = sum(_finished(first, name) and _finished(second, name) for name in first.votes)
        ticks = [(x & y).sum(), (x > y).sum(), (x < y).sum(), (x + y == 0).sum()]
        interval = (kappa.value, kappa.ci_low, kappa.ci_high, kappa.n)
        rows.append((*names, *interval, questions, *map(int, ticks)))
    return pd.DataFrame(rows, columns=_COLUMNS.split())


def image_labels(annotations: Sequence[Annotations]) -> pd.DataFrame:
    """Return one row for each question that somebody finished and each image with a vote of an
    annotator who finished or skipped it, sorted: question_id, doc_id, disputed, and label.

    An image is disputed where votes differ; that an annotator finished the question without seeing
    it counts as no clue. Label is 1 (clue), 0, or NaN: disputed, or not seen by all who finished.
    """
    votes = votes_table(annotations)
    votes = votes[votes["status"] != "open"]
    names = [each.annotator for each in annotations]
    table = votes.pivot(index=["question_id", "doc_id"], columns="annotator", values="label")
    table = table.reindex(columns=names)
    ids = table.index.get_level_values("question_id")
    done = pd.DataFrame(
        {each.annotator: [_finished(each, name) for name in ids] for each in annotations},
        index=table.index,
        columns=names,
        dtype=bool,
    )
    unseen = done & table.isna()
    counted = table.mask(unseen, 0)
    disputed = counted.max(axis=1) != counted.min(axis=1)
    label = counted.max(axis=1).mask(disputed | unseen.any(axis=1))
    labels = pd.DataFrame({"disputed": disputed, "label": label})[done.any(axis=1)]
    return labels.reset_index()


def _finished(annotations: Annotations, question_id: str) -> bool:
    return question_id in annotations.votes and annotations.votes[question_id].status == "done"


def finished_votes(annotations: Sequence[Annotations], question_id: str) -> dict[str, Vote]:
    """Return annotator → vote, for the annotators who finished the question."""
    finished = [each for each in annotations if _finished(each, question_id)]
    return {each.annotator: each.votes[question_id] for each in finished}


def find_disputes(annotations: Sequence[Annotations]) -> dict[str, Dispute]:
    """Return question_id → dispute, of the questions on which annotators differ.
    Disputed images come first, then up to `AGREED_CLUES` undisputed clues, ticked.
    """
    labels = image_labels(annotations)
    disputes = {}
    for question_id in dict.fromkeys(chain.from_iterable(each.votes for each in annotations)):
        part = labels[labels["question_id"] == question_id]
        disputed = part.loc[part["disputed"], "doc_id"].tolist()
        finished = finished_votes(annotations, question_id)
        if disputed or answers_differ(finished):
            agreed = part.loc[part["label"] == 1, "doc_id"].tolist()[:AGREED_CLUES]
            images = (*disputed, *agreed)
            remarks = {name: _remark(annotations, question_id, name) for name in images}
            answer = " | ".join(accepted_answers(finished))
            disputes[question_id] = Dispute(images, frozenset(agreed), remarks, answer)
    return disputes


def _remark(annotations: Sequence[Annotations], question_id: str, doc_id: str) -> str:
    """Which annotators call the image a clue, which do not, and which did not see it."""
    sides: dict[str, list[str]] = {"clue for": [], "not for": [], "not seen by": []}
    for each in annotations:
        vote = each.votes.get(question_id)
        if vote is None or vote.status == "open":
            continue
        if doc_id in vote.images:
            sides["clue for" if vote.images[doc_id] else "not for"].append(each.annotator)
        elif vote.status == "done":
            sides["not seen by"].append(each.annotator)
    return "; ".join(f"{words} {', '.join(names)}" for words, names in sides.items() if names)


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
