"""Agreement of annotators, and the disputes that an adjudicator must see
(Visual-RAG, section 4.2, stage 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.association import association
from vrag_kit.building.annotations import AnnotationLog, Vote, read_annotation_log
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.errors import VragError
from vrag_kit.log import logger

SHOWN_CLUES = 9
"""Maximum number of undisputed clues that an adjudicator sees per question."""


@dataclass(frozen=True, slots=True)
class Disputes:
    """What an adjudicator must see, by question.
    It holds `images`, `ticked`, `remarks` and `answers` of the annotation panel.
    """

    images: Mapping[str, tuple[str, ...]]
    ticked: Mapping[str, frozenset[str]]
    remarks: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, str]


def read_annotation_logs(
    paths: Sequence[Path | str], questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> list[AnnotationLog]:
    """Read the logs of several annotators, restricted to `questions` and to images in `folders`.
    Questions match by question_id. A printed note counts what else the logs hold; it is left out.

    A question that was reworded after its annotation is a new one: its ticks were for the old
    words. Images added to a folder after the annotation are not "no clue"; they have no label,
    which is printed too. Raises `VragError` as `read_annotation_log`, for a missing file, and for
    two logs of one annotator.
    """
    for file in map(Path, paths):
        if not file.exists():
            raise VragError(
                f"{file}: nobody has ticked as {file.stem} yet. Open the notebook with the"
                f" parameter annotator: {file.stem}, or take the file off annotation_files."
            )
    logs = [read_annotation_log(path) for path in paths]
    by_annotator: dict[str, Path | str] = {}
    for path, log in zip(paths, logs, strict=True):
        if log.annotator in by_annotator:
            raise VragError(
                f"two logs are of the annotator {log.annotator!r}:"
                f" {by_annotator[log.annotator]}, {path}. Let each annotator have a name; it stands"
                " in the first line of the log."
            )
        by_annotator[log.annotator] = path
    asked = set(questions["question_id"])
    images = {folder.name: frozenset(folder.images) for folder in folders}
    for log in logs:
        done = [vote for vote in log.votes.values() if vote.status == "done"]
        asked_done = [vote for vote in done if vote.question_id in asked]
        if new := sum(_unseen(vote, images) for vote in asked_done):
            logger.info(
                f"note: {log.annotator}: images that were not there when their question was"
                f" finished: {new:,}; without a label until it is reopened in the panel",
            )
    return [_current(log, questions, folders) for log in logs]


def _unseen(vote: Vote, images: Mapping[str, frozenset[str]]) -> int:
    """How many images of the folder were neither shown nor unreadable."""
    return len(images.get(vote.folder, frozenset()) - set(vote.shown) - vote.unreadable)


def read_adjudication(
    path: Path | str, questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> AnnotationLog:
    """Read the log of an adjudicator, who was shown disputed images only.
    It is restricted to questions and folders as in `read_annotation_logs`. Raises `VragError` as
    `read_annotation_log`.
    """
    return _current(read_annotation_log(path), questions, folders)


def _current(
    log: AnnotationLog, questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> AnnotationLog:
    """Its votes on these questions and images; what else it holds is told."""
    asked = set(questions["question_id"])
    images = {folder.name: frozenset(folder.images) for folder in folders}
    kept: dict[str, Vote] = {}
    lost: list[str] = []
    gone = 0
    for question_id, vote in log.votes.items():
        if question_id not in asked or vote.folder not in images:
            lost.append(vote.question)
            continue
        there = images[vote.folder]
        shown = tuple(doc_id for doc_id in vote.shown if doc_id in there)
        gone += len(set(vote.shown) - there)
        kept[question_id] = replace(vote, shown=shown, clues=vote.clues & there)
    if lost:
        logger.info(
            f"note: {log.annotator}: annotated questions that are not (or no longer) asked in these"
            f" words: {len(lost):,}, such as {lost[0]!r}; left out",
        )
    if gone:
        logger.info(
            f"note: {log.annotator}: images that were looked at and are no longer in their folders:"
            f" {gone:,}; left out",
        )
    return replace(log, votes=kept)


AGREEMENT_COLUMNS = [
    "first",
    "second",
    "kappa",
    "ci_low",
    "ci_high",
    "n",
    "questions",
    "both",
    "only_first",
    "only_second",
    "neither",
]


def annotator_agreement(logs: Sequence[AnnotationLog], *, seed: int = 0) -> pd.DataFrame:
    """Return Cohen's kappa of every two annotators, with a 95 % interval over species.
    It covers the images of the questions that both finished.

    Columns first, second, kappa, ci_low, ci_high (in [−1, 1]; NaN as in `association`), n (images),
    questions, both, only_first, only_second, neither (images by who ticked them). Clues are rare:
    two annotators without a common tick still agree on most images. Kappa corrects for that. Empty
    for fewer than two logs.
    """
    rows = [_agreement(first, second, seed) for first, second in combinations(logs, 2)]
    return pd.DataFrame(rows, columns=AGREEMENT_COLUMNS)


def _agreement(first: AnnotationLog, second: AnnotationLog, seed: int) -> dict[str, object]:
    """One row of `annotator_agreement`."""
    questions = 0
    x: list[int] = []
    y: list[int] = []
    species: list[str] = []
    for question_id in first.votes:
        votes = finished_votes([first, second], question_id)
        if len(votes) < 2:
            continue
        questions += 1
        one, other = votes.values()
        for doc_id in one.labels:
            if doc_id in other.labels:
                x.append(one.labels[doc_id])
                y.append(other.labels[doc_id])
                species.append(one.species)
    kappa = association(x, y, species, measure="kappa", seed=seed)
    ticked = Counter(zip(x, y, strict=True))
    value = {"kappa": kappa.value, "ci_low": kappa.ci_low, "ci_high": kappa.ci_high, "n": kappa.n}
    return {
        "first": first.annotator,
        "second": second.annotator,
        **value,
        "questions": questions,
        "both": ticked[1, 1],
        "only_first": ticked[1, 0],
        "only_second": ticked[0, 1],
        "neither": ticked[0, 0],
    }


def find_disputes(logs: Sequence[AnnotationLog]) -> Disputes:
    """Return the questions on which annotators differ, with the images to show.
    Disputed images come first, then up to `SHOWN_CLUES` undisputed clues, ticked.
    """
    images: dict[str, tuple[str, ...]] = {}
    ticked: dict[str, frozenset[str]] = {}
    remarks: dict[str, dict[str, str]] = {}
    answers: dict[str, str] = {}
    for question_id in _in_order(logs):
        votes = votes_with_skips(logs, question_id)
        disputed = disputed_images(votes)
        if disputed or answers_differ(votes):
            agreed = [doc_id for doc_id, label in agreed_labels(votes).items() if label]
            agreed = agreed[:SHOWN_CLUES]
            shown = (*disputed, *agreed)
            images[question_id] = shown
            ticked[question_id] = frozenset(agreed)
            remarks[question_id] = {doc_id: _remark(votes, doc_id) for doc_id in shown}
            answers[question_id] = " | ".join(accepted_answers(votes))
    return Disputes(images, ticked, remarks, answers)


def _in_order(logs: Sequence[AnnotationLog]) -> list[str]:
    """The questions of all logs, each once, as they were first opened."""
    every: dict[str, None] = {}
    for log in logs:
        every.update(dict.fromkeys(log.votes))
    return list(every)


def finished_votes(logs: Iterable[AnnotationLog], question_id: str) -> dict[str, Vote]:
    """Return annotator → vote, for the annotators who finished the question."""
    return {
        log.annotator: log.votes[question_id]
        for log in logs
        if question_id in log.votes and log.votes[question_id].status == "done"
    }


def votes_with_skips(logs: Iterable[AnnotationLog], question_id: str) -> dict[str, Vote]:
    """Return annotator → vote of those who finished or skipped a question that anybody finished.
    A skip claims that clues are not rare, which the others must answer.
    """
    votes = {
        log.annotator: log.votes[question_id]
        for log in logs
        if question_id in log.votes and log.votes[question_id].status in ("done", "skipped")
    }
    return votes if any(vote.status == "done" for vote in votes.values()) else {}


def disputed_images(votes: Mapping[str, Vote]) -> list[str]:
    """Return the images on which votes differ, sorted by name.
    An image that one annotator ticked and another, who finished, was not shown is one too.
    """
    every: set[str] = set()
    for vote in votes.values():
        every.update(vote.shown)
    return [doc_id for doc_id in sorted(every) if _differ(votes, doc_id)]


def _differ(votes: Mapping[str, Vote], doc_id: str) -> bool:
    """Whether the image is a clue for one and not for another who should have seen it."""
    said = set()
    for vote in votes.values():
        if vote.status == "done" or doc_id in vote.shown:
            said.add(doc_id in vote.clues)
    return len(said) > 1


def agreed_labels(votes: Mapping[str, Vote]) -> dict[str, int]:
    """Return image → label, sorted by name, for the undisputed images.
    Every annotator who finished was shown them.
    """
    done = [vote for vote in votes.values() if vote.status == "done"]
    shared = set.intersection(*(set(vote.shown) for vote in done)) if done else set()
    return {
        doc_id: int(doc_id in done[0].clues)
        for doc_id in sorted(shared - set(disputed_images(votes)))
    }


def answers_differ(votes: Mapping[str, Vote]) -> bool:
    """Return whether annotators who ticked clues and finished accept different answers."""
    said = [
        {answer.lower() for answer in split_answers(vote.answer)}
        for vote in votes.values()
        if vote.clues and vote.status == "done"
    ]
    return any(each != said[0] for each in said)


def accepted_answers(votes: Mapping[str, Vote]) -> tuple[str, ...]:
    """Return the distinct answers of the annotators who ticked clues and finished."""
    said = [vote.answer for vote in votes.values() if vote.clues and vote.status == "done"]
    return split_answers("|".join(said))


def split_answers(text: str) -> tuple[str, ...]:
    """Split a text into answers at "|", in order, without duplicates that differ in case only.
    Blanks and a full stop around them are stripped.
    """
    unique: dict[str, str] = {}
    for piece in text.split("|"):
        answer = " ".join(piece.split()).rstrip(" .")
        unique.setdefault(answer.lower(), answer)
    return tuple(answer for answer in unique.values() if answer)


def _remark(votes: Mapping[str, Vote], doc_id: str) -> str:
    """Who takes the image for a clue, who does not, and who did not see it."""
    sides: dict[str, list[str]] = {"clue for": [], "not for": [], "not shown to": []}
    for name, vote in votes.items():
        if doc_id in vote.clues:
            sides["clue for"].append(name)
        elif doc_id in vote.shown:
            sides["not for"].append(name)
        elif vote.status == "done":
            sides["not shown to"].append(name)
    return "; ".join(f"{words} {', '.join(names)}" for words, names in sides.items() if names)
