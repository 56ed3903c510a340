"""What an annotator is given: questions, each with its images in a random order of the
annotator's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from vrag_kit.building.agreement import Disputes
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.log import Vote
from vrag_kit.errors import VragError
from vrag_kit.order import ordered

PAGE = 27  # images on the screen at once; the paper's "first 27" are the first page
MANY = 9  # of a whole page; a question with more clues may be skipped (appendix C)
COLUMNS = ["question_id", "species", "folder", "question", "explanation", "feature", "rate"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """One question with the images to look at."""

    question_id: str
    species: str  # scientific name
    called: str  # as people say it
    folder: str
    question: str
    explanation: str
    feature: str
    rate: float  # the coarse filter's estimate in [0, 1]; NaN if there is none
    unjudged: int  # images that it could not judge
    root: Path  # the image root
    images: tuple[str, ...]  # doc_ids in random order, never empty
    remarks: Mapping[str, str] = field(default_factory=dict)  # doc_id → what is said below it
    proposal: str = ""  # an answer to begin with
    ticked: frozenset[str] = frozenset()  # images that are ticked to begin with

    def pages(self) -> list[tuple[str, ...]]:
        """The images in pages of `PAGE`, the last one shorter."""
        return [self.images[start : start + PAGE] for start in range(0, len(self.images), PAGE)]

    @property
    def rate_in_words(self) -> str:
        """The coarse filter's estimate, as it is shown."""
        if math.isnan(self.rate):
            return "estimated clue rate unknown"
        left = f", which could not judge {self.unjudged} images" if self.unjudged else ""
        return f"estimated clue rate {100 * self.rate:.1f} % (by the coarse filter{left})"

    def to_see(self, vote: Vote | None) -> list[str]:
        """The images that were not on the screen yet, in order."""
        return [
            doc_id
            for doc_id in self.images
            if vote is None or (doc_id not in vote.shown and doc_id not in vote.unreadable)
        ]

    def why_not_done(self, vote: Vote | None) -> str:
        """What is missing before the question can be done; "" if nothing is."""
        if left := len(self.to_see(vote)):
            return f"{left:,} of {len(self.images):,} images were not on the screen yet"
        if vote is None or not vote.shown:
            return "none of the images can be shown"
        return "the clues have no answer yet" if vote.clues and not vote.answer.strip() else ""

    def why_not_skipped(self, vote: Vote | None) -> str:
        """Why the question cannot be skipped; "" if it can: a third of the first page has
        clues, and more. Of a smaller folder, all images are the first page.
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


def assignments(
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    annotator: str,
    *,
    seed: int = 0,
    disputes: Disputes | None = None,
) -> list[Assignment]:
    """The rows of `questions` (columns question_id, species, folder, question,
    explanation, feature, rate), each with its folder's images in an order that seed,
    question and annotator determine; a file added to the folder moves no other. A
    column `unjudged` tells how many images the rate leaves out.

    With `disputes`, the images of a question are those that annotators differ on, with
    what they said. Raises `VragError` for a missing column, no or a repeated question,
    a folder that is not in `folders`, an image that is not in its folder, and a rate
    outside [0, 1].
    """
    _check(questions)
    by_name = {folder.name: folder for folder in folders}
    table = questions.assign(unjudged=questions.get("unjudged", 0))
    tasks = []
    for row in table[[*COLUMNS, "unjudged"]].to_dict("records"):
        name = row["question_id"]
        folder = by_name.get(row["folder"])
        if folder is None:
            raise VragError(
                f"question {name!r}: found the folder {row['folder']!r}, which is none of the"
                f" {len(by_name):,} species folders. Read them with `read_folders`."
            )
        if not pd.isna(row["rate"]) and not 0 <= row["rate"] <= 1:
            raise VragError(
                f"question {name!r}: found the rate {row['rate']}, expected 0 to 1, or NaN if there"
                " is no estimate."
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
    if missing := [name for name in COLUMNS if name not in questions]:
        raise VragError(
            f"the questions have no column {', '.join(missing)}; expected {', '.join(COLUMNS)}. A"
            " column `rate` of NaN says that no estimate is known."
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
