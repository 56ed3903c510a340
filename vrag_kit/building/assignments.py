"""Assignments of an annotator: questions with their images, in a random order per annotator, and
the rules of appendix C for when a question is done or may be skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from vrag_kit.building.annotations import IDENTITY, Vote
from vrag_kit.building.decisions import Dispute
from vrag_kit.building.species import SpeciesFolder, folder_of
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import require_columns
from vrag_kit.types import ordered

PAGE = 27  # images on the screen at once; the paper's "first 27" are the first page
MANY = 9  # of a whole page; a question with more clues may be skipped (appendix C)


@dataclass(frozen=True, slots=True)
class Assignment:
    """One question with the images to annotate."""

    vote: Vote  # the vote to begin with: a proposed answer, and no images
    explanation: str
    folder: SpeciesFolder
    images: tuple[str, ...]  # doc_ids in random order, never empty
    dispute: Dispute = field(default_factory=Dispute)

    def pages(self) -> list[tuple[str, ...]]:
        """Return the images in pages of `PAGE`; the last one may be shorter."""
        return [self.images[start : start + PAGE] for start in range(0, len(self.images), PAGE)]

    def unseen_images(self, vote: Vote) -> list[str]:
        """Return the images that have not been on the screen, in order."""
        seen = {*vote.images, *vote.unreadable}
        return [doc_id for doc_id in self.images if doc_id not in seen]

    def incomplete_reason(self, vote: Vote) -> str:
        """Return what is missing before the question can be done; "" if nothing is."""
        if unseen := len(self.unseen_images(vote)):
            return f"{unseen:,} of {len(self.images):,} images were not on the screen yet"
        if not vote.images:
            return "none of the images can be shown"
        return "the clues have no answer yet" if vote.clues and not vote.answer.strip() else ""

    def skip_refused_reason(self, vote: Vote) -> str:
        """Return why the question cannot be skipped; "" if it can.
        More than a third of the first page must be clues; a smaller folder is one page.
        """
        first = self.images[:PAGE]
        clues = len(set(vote.clues) & set(first))
        many = MANY if self.dispute.images else MANY * len(first) // PAGE  # disputed ones are few
        if clues > many:
            return ""
        return (
            f"too common? it may be skipped after more than {many} clues in the first"
            f" {len(first)} images ({clues} so far)"
        )


def make_assignments(
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    annotator: str,
    *,
    seed: int = 0,
    disputes: Mapping[str, Dispute] | None = None,
) -> list[Assignment]:
    """Return an assignment for each row of `questions`, with its folder's images in random order.
    Columns question_id, species, folder, question, feature, explanation. Seed,
    question and annotator determine the order; a new file in the folder moves no other.

    With `disputes`, the images of a question are the disputed ones and some undisputed clues.
    Raises `VragError` for a missing column, without any question, and for a folder that is not in
    `folders`.
    """
    require_columns(questions, [*IDENTITY, "explanation"], "questions to annotate")
    if questions.empty:
        raise VragError("found no question to annotate; expected one or more that are not dropped.")
    tasks = []
    for row in questions.to_dict("records"):
        folder = folder_of(row, folders)
        dispute = (disputes or {}).get(row["question_id"], Dispute())
        images = folder.images if disputes is None else dispute.images
        words = {column: row[column] for column in IDENTITY}
        tasks.append(
            Assignment(
                vote=Vote.model_validate({**words, "answer": dispute.answer}),
                explanation=row["explanation"],
                folder=folder,
                images=tuple(ordered(images, seed, row["question_id"], annotator)),
                dispute=dispute,
            )
        )
    return tasks
