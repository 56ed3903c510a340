"""Votes of annotators: one file for each annotator, replaced whole at every action, and read for
the current questions and images.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import ConfigDict, Field

from vrag_kit.benchmarks.rows import InsidePath, Problems, Row, validate
from vrag_kit.benchmarks.sources import parse_object, read_lines
from vrag_kit.building.species import SpeciesFolder
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import project_path, write_file
from vrag_kit.log import logger

FORMAT = "vrag_kit annotations, version 2"
IDENTITY = ("question_id", "species", "folder", "question", "feature")
"""Required fields of a vote; the others have defaults."""


class Vote(Row):
    """One annotator's labels and answer for one question so far: one line of a file."""

    model_config = ConfigDict(extra="forbid")

    question_id: str
    species: str  # scientific name
    folder: str
    question: str
    feature: str
    status: Literal["open", "done", "skipped"] = "open"
    # doc_id → 1 if ticked as a clue, else 0; images that were on the screen, in that order
    images: dict[InsidePath, Annotated[int, Field(ge=0, le=1)]] = Field(default_factory=dict)
    # doc_ids that could not be displayed, and have no label
    unreadable: list[InsidePath] = Field(default_factory=list)
    answer: str = ""
    suggestion: str = ""  # a new question

    @property
    def clues(self) -> list[str]:
        """The images that are ticked, in order."""
        return [doc_id for doc_id, label in self.images.items() if label]


@dataclass(frozen=True, slots=True)
class Annotations:
    """An annotator's votes by question_id, in the order in which the questions were opened."""

    annotator: str
    votes: Mapping[str, Vote] = field(default_factory=dict)


def read_votes(path: Path | str) -> Annotations:
    """Read an annotator's file.

    Raises `VragError` for a file that cannot be read or has another format, for a line that is no
    vote, for an image outside the image root, and for a question that occurs twice.
    """
    lines = list(read_lines(project_path(path), "annotation file"))
    annotator = _annotator(lines[0][1] if lines else "", path)
    votes: dict[str, Vote] = {}
    problems, seen = Problems(), dict[str, str]()
    for where, line in lines[1:]:
        vote = validate(Vote, parse_object(line, where, IDENTITY), where, problems)
        if vote and problems.is_new(repr(vote.question_id), where, seen):
            votes[vote.question_id] = vote
    return Annotations(annotator, votes)


def _annotator(line: str, path: Path | str) -> str:
    with suppress(ValueError, TypeError, KeyError):
        header = json.loads(line)
        if header["format"] == FORMAT:
            return str(header["annotator"])
    raise VragError(
        f"{path} line 1: not an annotation file: found {short_repr(line.strip())}; expected"
        f' {{"annotator": …, "format": "{FORMAT}"}}.'
    )


class AnnotationFile:
    """An annotator's file; `annotations` holds its votes as of the last `refresh` or `save`."""

    def __init__(self, path: Path | str, annotator: str) -> None:
        """Opens or creates the file. Raises `VragError` for a blank name, when the file belongs to
        another annotator, and as `read_votes`; `OSError` when it cannot be written.
        """
        if not annotator.strip():
            raise VragError(f"found the annotator {annotator!r}; expected a name.")
        self.path = project_path(path)
        self.annotations = Annotations(annotator)
        if not self.path.exists():
            self._write(self.annotations)
        self.refresh()

    def refresh(self) -> None:
        """Read the file, which another panel may have replaced. Raises `VragError` as `read_votes`
        and for another annotator's file; `annotations` is then unchanged.
        """
        found = read_votes(self.path)
        if found.annotator != self.annotations.annotator:
            raise VragError(
                f"{self.path}: found annotations of {found.annotator!r}, expected those of"
                f" {self.annotations.annotator!r}. Use a file for each annotator."
            )
        self.annotations = found

    def save(self, vote: Vote) -> None:
        """Add or replace one vote, on the disk when this returns. Raises `OSError` when it cannot
        be written; file and `annotations` are then unchanged.
        """
        votes = {**self.annotations.votes, vote.question_id: vote}
        annotations = replace(self.annotations, votes=votes)
        self._write(annotations)
        self.annotations = annotations

    def _write(self, annotations: Annotations) -> None:
        header = {"annotator": annotations.annotator, "format": FORMAT}
        lines = [json.dumps(header, ensure_ascii=False)]
        lines += [vote.model_dump_json() for vote in annotations.votes.values()]
        write_file(self.path, "".join(f"{line}\n" for line in lines))


def read_annotation_files(
    paths: Sequence[Path | str], questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> list[Annotations]:
    """Read the files of several annotators, each as `read_annotations` does.
    Questions match by question_id.

    A question that was reworded after its annotation is a new one, and an image that was added
    after it has no label. Raises `VragError` as `read_annotations`, and for two files of one
    annotator.
    """
    current: list[Annotations] = []
    for path in paths:
        found = read_annotations(path, questions, folders)
        if found.annotator in [each.annotator for each in current]:
            raise VragError(
                f"{path}: found a second file of the annotator {found.annotator!r}; expected one"
                " file for each annotator."
            )
        current.append(found)
    return current


def read_annotations(
    path: Path | str, questions: pd.DataFrame, folders: Sequence[SpeciesFolder]
) -> Annotations:
    """Read the file of one annotator, or of an adjudicator, whose panel displayed disputed images
    only. It is restricted to `questions` and to images in `folders`; a printed note counts what
    questions it holds else. Raises `VragError` as `read_votes` and for a file without any of the
    questions.
    """
    found = read_votes(path)
    images = {folder.name: set(folder.images) for folder in folders}
    ids = set(questions["question_id"])
    votes, others = {}, []
    for vote in found.votes.values():
        if vote.question_id in ids and vote.folder in images:
            left = {name: vote.images[name] for name in vote.images if name in images[vote.folder]}
            votes[vote.question_id] = vote.model_copy(update={"images": left})
        else:
            others.append(vote.question)
    if others and not votes:
        raise VragError(
            f"{path}: found annotations of {len(others):,} other questions, such as {others[0]!r};"
            " expected those of the current questions and folders. Annotate these in the panel, or"
            " name another file."
        )
    if others:
        logger.info(f"note: {path}: left out {len(others):,} questions that are not asked any more")
    return replace(found, votes=votes)
