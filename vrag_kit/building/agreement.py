"""How far annotators agree, and where they do not: what an adjudicator must see
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
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.log import AnnotationLog, Vote, read_log
from vrag_kit.errors import VragError

SHOWN_CLUES = 9
"""Clues that all agree on and that the adjudicator of a question sees beside the
disputed images.
"""


@dataclass(frozen=True, slots=True)
class Disputes:
    """What an adjudicator must see, by question: `images`, `ticked`, `remarks` and
    `answers` of the annotation panel.
    """

    images: Mapping[str, tuple[str, ...]]
    ticked: Mapping[str, frozenset[str]]
    remarks: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, str]


def read_logs(
    paths: Sequence[Path | str], questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> list[AnnotationLog]:
    """The logs of several annotators: what they say of `questions` (question_id) and of
    the images that are in `folders`. What else they hold is told and left out.

    A question that was reworded after it was annotated is another one: its ticks were
    for the old words. Images that were added to a folder since are not "no clue"; they
    have no label, which is told too. Raises `VragError` as `read_log`, and when two
    logs are of one annotator.
    """
    logs = [read_log(path) for path in paths]
    if twice := [
        name for name, count in Counter(log.annotator for log in logs).items() if count > 1
    ]:
        raise VragError(
            f"two logs are of the annotator {twice[0]!r}:"
            f" {', '.join(str(path) for path, log in zip(paths, logs, strict=True) if log.annotator == twice[0])}."
            " Let each annotator have a name; it stands in the first line of the log."
        )
    asked, images = (
        set(questions["question_id"]),
        {folder.name: frozenset(folder.images) for folder in folders},
    )
    for log in logs:
        new = sum(
            len(images.get(vote.folder, frozenset()) - set(vote.shown) - vote.unreadable)
            for vote in log.votes.values()
            if vote.status == "done" and vote.question_id in asked
        )
        if new:
            print(
                f"note: {log.annotator}: {new:,} images are there that were not when the question"
                " was finished; they have no label until it is reopened in the panel",
                flush=True,
            )
    return [_current(log, questions, folders) for log in logs]


def read_ruling(
    path: Path | str, questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> AnnotationLog:
    """The log of an adjudicator, who was shown disputed images alone; held against
    questions and folders as `read_logs` does. Raises `VragError` as `read_log`.
    """
    return _current(read_log(path), questions, folders)


def _current(
    log: AnnotationLog, questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> AnnotationLog:
    """Its votes on these questions and images; what else it holds is told."""
    current, images = (
        set(questions["question_id"]),
        {folder.name: frozenset(folder.images) for folder in folders},
    )
    kept = {
        question_id: vote
        for question_id, vote in log.votes.items()
        if question_id in current and vote.folder in images
    }
    lost = [vote.question for question_id, vote in log.votes.items() if question_id not in kept]
    gone = sum(len(set(vote.shown) - images[vote.folder]) for vote in kept.values())
    for count, words in (
        (
            len(lost),
            (
                "annotated questions are not (or no longer) asked in these words, such as"
                f" {lost[0] if lost else ''!r}; left out"
            ),
        ),
        (gone, "images that were looked at are no longer in their folders; left out"),
    ):
        if count:
            print(f"note: {log.annotator}: {count:,} {words}", flush=True)
    return replace(
        log,
        votes={
            question_id: replace(
                vote,
                shown=tuple(doc_id for doc_id in vote.shown if doc_id in images[vote.folder]),
                clues=vote.clues & images[vote.folder],
            )
            for question_id, vote in kept.items()
        },
    )


def annotator_agreement(logs: Sequence[AnnotationLog], *, seed: int = 0) -> pd.DataFrame:
    """Cohen's kappa of every two annotators on the images of the questions that both
    finished, with a 95 % interval over species.

    Columns first, second, kappa, ci_low, ci_high (in [−1, 1]; NaN as in `association`),
    n (images), questions, both, only_first, only_second, neither (images ticked by
    whom). Clues are rare, so that two annotators who tick nothing in common still agree
    on most images: kappa takes that out. Empty for fewer than two logs.
    """
    rows = []
    for first, second in combinations(logs, 2):
        together = [
            votes
            for question_id in first.votes
            if len(votes := finished([first, second], question_id)) == 2
        ]
        pairs = [
            (a.species, a.labels[doc_id], b.labels[doc_id])
            for a, b in (votes.values() for votes in together)
            for doc_id in a.labels
            if doc_id in b.labels
        ]
        species, x, y = zip(*pairs, strict=True) if pairs else ((), (), ())
        kappa, ticked = (
            association(x, y, species, measure="kappa", seed=seed),
            Counter(zip(x, y, strict=True)),
        )
        rows.append(
            (
                first.annotator,
                second.annotator,
                kappa.value,
                kappa.ci_low,
                kappa.ci_high,
                kappa.n,
                len(together),
                *(ticked[pair] for pair in ((1, 1), (1, 0), (0, 1), (0, 0))),
            )
        )
    return pd.DataFrame(
        rows,
        columns=[
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
        ],
    )


def find_disputes(logs: Sequence[AnnotationLog]) -> Disputes:
    """The questions on which annotators differ, with what to show: disputed images
    first, then up to `SHOWN_CLUES` clues on which all agree, ticked.
    """
    images: dict[str, tuple[str, ...]] = {}
    ticked: dict[str, frozenset[str]] = {}
    remarks: dict[str, dict[str, str]] = {}
    answers: dict[str, str] = {}
    for question_id in dict.fromkeys(question_id for log in logs for question_id in log.votes):
        votes = given(logs, question_id)
        disputed = disputed_images(votes)
        if disputed or answers_differ(votes):
            agreed = [doc_id for doc_id, label in agreed_labels(votes).items() if label][
                :SHOWN_CLUES
            ]
            images[question_id], ticked[question_id] = (*disputed, *agreed), frozenset(agreed)
            remarks[question_id] = {
                doc_id: _remark(votes, doc_id) for doc_id in images[question_id]
            }
            answers[question_id] = " | ".join(answers_of(votes))
    return Disputes(images, ticked, remarks, answers)


def finished(logs: Iterable[AnnotationLog], question_id: str) -> dict[str, Vote]:
    """Annotator → vote of those who finished the question."""
    return {
        log.annotator: log.votes[question_id]
        for log in logs
        if question_id in log.votes and log.votes[question_id].status == "done"
    }


def given(logs: Iterable[AnnotationLog], question_id: str) -> dict[str, Vote]:
    """The same with those who skipped it, where anybody finished it: a skip says that
    clues are not rare, which the others must answer.
    """
    votes = {
        log.annotator: log.votes[question_id]
        for log in logs
        if question_id in log.votes and log.votes[question_id].status in ("done", "skipped")
    }
    return votes if any(vote.status == "done" for vote in votes.values()) else {}


def disputed_images(votes: Mapping[str, Vote]) -> list[str]:
    """The images on which votes differ, and those that one has ticked and another who
    finished was not shown; by name.
    """
    every = sorted({doc_id for vote in votes.values() for doc_id in vote.shown})
    return [
        doc_id
        for doc_id in every
        if len(
            {
                doc_id in vote.clues
                for vote in votes.values()
                if vote.status == "done" or doc_id in vote.shown
            }
        )
        > 1
    ]


def agreed_labels(votes: Mapping[str, Vote]) -> dict[str, int]:
    """Image → label, for those that everybody was shown who finished, and that are not
    in dispute; by name.
    """
    done = [vote for vote in votes.values() if vote.status == "done"]
    shared = set.intersection(*(set(vote.shown) for vote in done)) if done else set()
    return {
        doc_id: int(doc_id in done[0].clues)
        for doc_id in sorted(shared - set(disputed_images(votes)))
    }


def answers_differ(votes: Mapping[str, Vote]) -> bool:
    """Whether those who ticked clues and finished accept different answers."""
    said = [
        {answer.lower() for answer in split_answers(vote.answer)}
        for vote in votes.values()
        if vote.clues and vote.status == "done"
    ]
    return any(each != said[0] for each in said)


def answers_of(votes: Mapping[str, Vote]) -> tuple[str, ...]:
    """All answers of those who ticked clues and finished, each once."""
    return split_answers(
        "|".join(vote.answer for vote in votes.values() if vote.clues and vote.status == "done")
    )


def split_answers(text: str) -> tuple[str, ...]:
    """The answers in a text, in order, each once without regard to case; they are
    separated by "|". Blanks and a full stop around them do not count.
    """
    unique: dict[str, str] = {}
    for answer in (" ".join(piece.split()).rstrip(" .") for piece in text.split("|")):
        unique.setdefault(answer.lower(), answer)
    return tuple(answer for answer in unique.values() if answer)


def _remark(votes: Mapping[str, Vote], doc_id: str) -> str:
    sides = {
        "clue for": [name for name, vote in votes.items() if doc_id in vote.clues],
        "not for": [
            name
            for name, vote in votes.items()
            if doc_id in vote.shown and doc_id not in vote.clues
        ],
        "not shown to": [
            name
            for name, vote in votes.items()
            if vote.status == "done" and doc_id not in vote.shown
        ],
    }
    return "; ".join(f"{words} {', '.join(names)}" for words, names in sides.items() if names)
