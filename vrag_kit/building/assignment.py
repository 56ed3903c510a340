"""Assignments of an annotator: questions with their images, in a random order per annotator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from vrag_kit.building.agreement import Disputes
from vrag_kit.building.annotations import Vote
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.errors import VragError
from vrag_kit.order import ordered

PAGE = 27  # images on the screen at once; the paper's "first 27" are the first page
MANY = 9  # of a whole page; a question with more clues may be skipped (appendix C)
_COLUMNS = [
    "question_id",
    "species",
    "folder",
    "question",
    "explanation",
    "feature",
    "estimated_clue_rate",
]


@dataclass(frozen=True, slots=True)
class Assignment:
    """One question with the images to annotate."""

    question_id: str
    species: str  # scientific name
    called: str  # as people say it
    folder: str
    question: str
    explanation: str
    feature: str
    estimated_clue_rate: float  # the coarse filter's estimate in [0, 1]; NaN if there is none
    n_unjudged: int  # images that it could not judge
    root: Path  # the image root
    images: tuple[str, ...]  # doc_ids in random order, never empty
    remarks: Mapping[str, str] = field(default_factory=dict)  # doc_id → what is said below it
    proposal: str = ""  # an answer to begin with
    ticked: frozenset[str] = frozenset()  # images that are ticked to begin with

    def pages(self) -> list[tuple[str, ...]]:
        """Return the images in pages of `PAGE`; the last one may be shorter."""
        return [self.images[start : start + PAGE] for start in range(0, len(self.images), PAGE)]

    @property
    def rate_in_words(self) -> str:
        """The coarse filter's estimate as display text."""
        if math.isnan(self.estimated_clue_rate):
            return "estimated clue rate unknown"
        left = f", which could not judge {self.n_unjudged} images" if self.n_unjudged else ""
        percent = 100 * self.estimated_clue_rate
        return f"estimated clue rate {percent:.1f} % (by the coarse filter{left})"

    def unseen_images(self, vote: Vote | None) -> list[str]:
        """Return the images that were not shown yet, in order."""
        return [
            doc_id
            for doc_id in self.images
            if vote is None or (doc_id not in vote.shown and doc_id not in vote.unreadable)
        ]

    def incomplete_reason(self, vote: Vote | None) -> str:
        """Return what is missing before the question can be done; "" if nothing is."""
        if left := len(self.unseen_images(vote)):
            return f"{left:,} of {len(self.images):,} images were not on the screen yet"
        if vote is None or not vote.shown:
            return "none of the images can be shown"
        return "the clues have no answer yet" if vote.clues and not vote.answer.strip() else ""

    def skip_refused_reason(self, vote: Vote | None) -> str:
        """Return why the question cannot be skipped; "" if it can.
        More than a third of the first page must be clues; a smaller folder is one page.
        """
        first = self.images[:PAGE]
        clues = len(vote.clues & set(first)) if vote else 0
        many = MANY if self.remarks else MANY * len(first) // PAGE  # disputed ones are few
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
    disputes: Disputes | None = None,
) -> list[Assignment]:
    """Return an assignment for each row of `questions`, with its folder's images in random order.
    Columns question_id, species, folder, question, explanation, feature, estimated_clue_rate. Seed,
    question and annotator determine the order; a new file in the folder moves no other. A column
    `n_unjudged` gives the number of images that the rate leaves out.

    With `disputes`, the images of a question are the disputed ones and some undisputed clues, with
    the annotators' remarks. Raises `VragError` for a missing column, no or a repeated question, a
    folder not in `folders`, an image not in its folder, and a rate outside [0, 1].
    """
    _check(questions)
    by_name = {folder.name: folder for folder in folders}
    table = questions.assign(n_unjudged=questions.get("n_unjudged", 0))
    tasks = []
    for row in table[[*_COLUMNS, "n_unjudged"]].to_dict("records"):
        name = row["question_id"]
        folder = by_name.get(row["folder"])
        if folder is None:
            raise VragError(
                f"question {name!r}: found the folder {row['folder']!r}, which is none of the"
                f" {len(by_name):,} species folders. Read them with `read_species_folders`."
            )
        rate = row["estimated_clue_rate"]
        if not pd.isna(rate) and not 0 <= rate <= 1:
            raise VragError(
                f"question {name!r}: found the estimated_clue_rate {rate}, expected 0 to 1, or NaN"
                " if there is no estimate."
            )
        task = Assignment(
            **{str(column): value for column, value in row.items()},
            called=folder.called,
            root=folder.root,
            images=tuple(ordered(_images(folder, name, disputes), seed, name, annotator)),
        )
        if disputes:
            task = replace(
                task,
                remarks=disputes.remarks[name],
                proposal=disputes.answers[name],
                ticked=disputes.ticked[name],
            )
        tasks.append(task)
    return tasks


def _check(questions: pd.DataFrame) -> None:
    """Raise `VragError` for a missing column, no question, and one that is there twice."""
    if missing := [name for name in _COLUMNS if name not in questions]:
        raise VragError(
            f"the questions have no column {', '.join(missing)}; expected {', '.join(_COLUMNS)}. A"
            " column `estimated_clue_rate` of NaN says that no estimate is known."
        )
    if questions.empty:
        raise VragError(
            "there is no question to annotate; expected one row or more. Were all of them dropped?"
            " Their column `dropped` says why; write others into their file."
        )
    if twice := list(questions["question_id"][questions["question_id"].duplicated()]):
        raise VragError(f"the question {twice[0]!r} is there twice; expected each once.")


def _images(folder: SpeciesFolder, question_id: str, disputes: Disputes | None) -> Sequence[str]:
    """The images to look at, never none."""
    images = folder.images
    if disputes:
        images = disputes.images.get(question_id, ())
        if gone := next((doc_id for doc_id in images if doc_id not in folder.images), None):
            raise VragError(
                f"question {question_id!r}: the image {gone!r} is not in the folder {folder.name}."
                " Bring it back, or leave it out."
            )
    if not images:
        raise VragError(
            f"question {question_id!r}: there is no image to look at. Leave the question out."
        )
    return images
