"""Decide from the annotators' votes which questions enter the benchmark.

The paper's rule is 0 < clue rate ≤ 0.25 (Visual-RAG, section 4.2, stage 2).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.agreement import (
    accepted_answers,
    agreed_labels,
    answers_differ,
    disputed_images,
    finished_votes,
    split_answers,
    votes_with_skips,
)
from vrag_kit.building.annotations import AnnotationLog, Vote
from vrag_kit.building.parameter_file import parameter_file_text
from vrag_kit.building.visibility import MOST_CLUES
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.log import logger
from vrag_kit.plain import Json
from vrag_kit.workspace import display_path

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
_NAMED = 3
"""Species that are named where more have no question."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The status of one question, with its labels and accepted answers."""

    question_id: str
    species: str
    question: str
    status: str  # one of STATUSES
    reason: str  # in words; "" for one that is kept
    estimated_clue_rate: float  # by the coarse filter, in [0, 1]; NaN where it was not asked
    labels: Mapping[str, int]  # image → 1 (clue) or 0; empty until people have decided
    answers: tuple[str, ...]  # accepted answers, in the order in which they were given
    annotators: tuple[str, ...]  # who finished it

    @property
    def clue_rate(self) -> float:
        """Share of clues among the labelled images, in [0, 1]; NaN without any."""
        return sum(self.labels.values()) / len(self.labels) if self.labels else np.nan


def decide_questions(
    questions: pd.DataFrame,
    logs: Sequence[AnnotationLog],
    adjudicated: AnnotationLog | None = None,
    *,
    limit: float = MOST_CLUES,
) -> list[Decision]:
    """Return the decision on each question, in the order of `questions`.
    `questions` are as `coarse_filter` returns them, logs as `read_annotation_logs` does.

    A question is labelled by the annotators who finished it, on the images that all of them were
    shown. It is in dispute where they differ on an image or in the answer, and where one skipped it
    and ticked otherwise. Then it waits until the adjudicator has ruled on every disputed image, and
    the adjudicator's ticks and answers hold. Where annotators agree, all their answers are
    accepted. A question is kept when 0 < clue rate ≤ `limit`. A question that was dropped before
    stays dropped, but carries its labels if it has any.
    """
    return [_decide(row, logs, adjudicated, limit) for row in questions.itertuples()]


def write_benchmark(
    folder: Path | str,
    decisions: Sequence[Decision],
    image_root: Path,
    name: str,
    *,
    articles: Path | None = None,
    species: Path | None = None,
) -> Path:
    """Write the kept questions to <folder>/annotations.jsonl, and return its path.
    The format is Visual-RAG, version 2. A parameter file for `vrag run` is written too. A note
    names species without a kept question that had one to annotate.

    The parameter file is named as the folder; see `parameter_file_text`. Raises `VragError` when no
    question is kept, when the folder holds a benchmark over other images, and when it cannot be
    written; existing files stay.
    """
    folder = Path(folder)
    annotations, parameters = folder / "annotations.jsonl", folder / f"{folder.name}.yaml"
    kept = _kept(decisions, annotations)
    _tell_lacking(decisions)
    lines = [json.dumps(_row(each), ensure_ascii=False) + "\n" for each in kept]
    data = {
        "annotations": display_path(annotations),
        "image_root": display_path(image_root),
        "name": name,
    }
    where: Json = {"data": data}
    if articles and species:
        where["articles"] = {"pages": display_path(articles), "species_list": display_path(species)}
    try:
        before = _before(parameters)
        images = before.get("data", {}).get("image_root")
        if before and images != data["image_root"]:
            raise VragError(
                f"{folder}: holds a benchmark over {str(images)!r}; this one is over"
                f" {data['image_root']!r}. Choose another folder for it."
            )
        write_file(annotations, "".join(lines))
        benchmark = load_visual_rag(annotations, image_root)
        write_file(parameters, parameter_file_text(benchmark, folder.name, where, before))
    except OSError as error:
        raise VragError(
            f"{folder}: the benchmark cannot be written ({error.strerror}). Choose another folder,"
            " or free space; the annotators' logs hold everything."
        ) from error
    return annotations


def _kept(decisions: Sequence[Decision], annotations: Path) -> list[Decision]:
    """The questions that are kept; raises `VragError` when there is none."""
    kept = [each for each in decisions if each.status == "kept"]
    if not kept:
        counts = Counter(each.status for each in decisions)
        statuses = ", ".join(f"{count} {_in_words(status)}" for status, count in counts.items())
        raise VragError(
            f"{annotations}: no question is kept, so no benchmark is written"
            f" ({statuses or 'there are none'}). Annotate in the notebook's panel, in JupyterLab,"
            " and name its file among those that count."
        )
    return kept


def _tell_lacking(decisions: Sequence[Decision]) -> None:
    """Name the species of which no question is kept, but those whose questions all were
    dropped before anybody annotated.
    """
    kept = {each.species for each in decisions if each.status == "kept"}
    lacking: dict[str, str] = {}
    for each in decisions:
        if each.species not in kept and not each.status.startswith("dropped"):
            lacking.setdefault(
                each.species, f"{each.species} ({_in_words(each.status)}: {each.reason})"
            )
    if lacking:
        of = len({each.species for each in decisions})
        more = ", …" if len(lacking) > _NAMED else ""
        named = ", ".join(list(lacking.values())[:_NAMED])
        logger.warning(f"of {len(lacking):,} of {of:,} species no question is kept: {named}{more}")


def _row(decision: Decision) -> dict[str, object]:
    """A question as a row of Visual-RAG's annotations, version 2."""
    return {
        "question": decision.question,
        "answer": list(decision.answers),
        "sn": decision.species,
        "images": dict(decision.labels),
        "y_rate": decision.clue_rate,
        "y_count": sum(decision.labels.values()),
        "is_changed_v2": "unchanged",
    }


def _before(parameters: Path) -> Json:
    """The values of the parameter file that is there; {} without one."""
    if not parameters.is_file():
        return {}
    values: Json = yaml.safe_load(parameters.read_text(encoding="utf-8")) or {}
    return values


@dataclass(frozen=True, slots=True)
class _Judged:
    """What people have said of one question, all taken together."""

    waits: str  # for what of the adjudicator; "" when nothing is in dispute
    labels: Mapping[str, int]  # image → 1 (clue) or 0; empty while it waits
    answers: tuple[str, ...]
    annotators: tuple[str, ...]  # who finished it
    skipped: bool  # by anybody

    @property
    def clue_rate(self) -> float:
        return sum(self.labels.values()) / len(self.labels) if self.labels else np.nan


def _judged(
    question_id: str, logs: Sequence[AnnotationLog], adjudicated: AnnotationLog | None
) -> _Judged:
    votes = votes_with_skips(logs, question_id)
    disputed = disputed_images(votes)
    ruling: Vote | None = None
    if adjudicated and (disputed or answers_differ(votes)):
        ruling = finished_votes([adjudicated], question_id).get(adjudicated.annotator)
    ruled = ruling.labels if ruling else {}
    unruled = [doc_id for doc_id in disputed if doc_id not in ruled]
    waits = ""
    if unruled:
        waits = f"annotators differ on {len(unruled)} images that are not ruled on"
    elif ruling is None and answers_differ(votes):
        waits = "annotators differ in the answer"
    labels = {} if waits else dict(sorted((agreed_labels(votes) | ruled).items()))
    answers = accepted_answers(votes)
    if ruling and ruling.answer.strip():
        answers = split_answers(ruling.answer)
    annotators = tuple(finished_votes(logs, question_id))
    opened = [log.votes[question_id] for log in logs if question_id in log.votes]
    skipped = any(vote.status == "skipped" for vote in opened)
    return _Judged(waits, labels, answers, annotators, skipped)


def _decide(
    row: Any, logs: Sequence[AnnotationLog], adjudicated: AnnotationLog | None, limit: float
) -> Decision:
    """What becomes of one row of the questions (a namedtuple of pandas, without types)."""
    said = _judged(row.question_id, logs, adjudicated)
    status, reason = _status(said, limit)
    if row.dropped:
        filtered = row.n_judged + row.n_unjudged > 0
        status, reason = "dropped_by_filter" if filtered else "dropped_earlier", row.dropped
    asked = (row.question_id, row.species, row.question, status, reason, row.estimated_clue_rate)
    return Decision(*asked, said.labels, said.answers, said.annotators)


def _in_words(status: str) -> str:
    return status.replace("_", " ")


def _status(judged: _Judged, limit: float) -> tuple[str, str]:
    """What becomes of a question that was not dropped, and why; the first that holds."""
    share = judged.clue_rate
    checks = [
        (
            not judged.annotators and judged.skipped,
            "skipped",
            "too many of the first images show it",
        ),
        (not judged.annotators, "not_annotated", "nobody has finished it"),
        (bool(judged.waits), "awaiting_adjudication", judged.waits),
        (not judged.labels, "not_annotated", "no image was shown to all who finished it"),
        (share == 0, "no_clue", "no image shows it"),
        (share > limit, "too_common", f"the clue rate {share:.1%} is above {limit:.0%}"),
        (not judged.answers, "awaiting_adjudication", "nobody gave an answer"),
    ]
    return next(((status, reason) for holds, status, reason in checks if holds), ("kept", ""))
