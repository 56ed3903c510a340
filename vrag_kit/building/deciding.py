"""From votes to a benchmark: what becomes of each question, by the paper's rule 0 <
clue rate ≤ 0.25 (Visual-RAG, section 4.2, stage 2).
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

from vrag_kit.building.agreement import (
    agreed_labels,
    answers_differ,
    answers_of,
    disputed_images,
    finished,
    given,
    split_answers,
)
from vrag_kit.building.log import AnnotationLog
from vrag_kit.building.presence import MOST_CLUES
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.workspace import shown

FATES = (
    "kept",
    "too common",
    "no clue",
    "waits for adjudication",
    "skipped",
    "not annotated",
    "dropped by the filter",
    "dropped before",
)
"""What can become of a question; those further back are decided earlier."""

NOT_GIVEN = "(not given)"
"""In a parameter file: further data that some notebooks need and this benchmark does
not have; they fail alone, and name it.
"""
_MORE = ("articles", "other_corpus", "webqa")


@dataclass(frozen=True, slots=True)
class Decision:
    """One question, and what became of it."""

    question_id: str
    species: str
    question: str
    fate: str  # one of FATES
    why: str  # in words; "" for one that is kept
    estimated: float  # the coarse filter's clue rate, in [0, 1]; NaN where it was not asked
    labels: Mapping[str, int]  # image → 1 (clue) or 0; empty until people have decided
    answers: tuple[str, ...]  # accepted answers, in the order in which they were given
    annotators: tuple[str, ...]  # who finished it

    @property
    def clue_rate(self) -> float:
        """Clues among the labelled images, in [0, 1]; NaN without any."""
        return sum(self.labels.values()) / len(self.labels) if self.labels else np.nan


def decide(
    questions: pd.DataFrame,
    logs: Sequence[AnnotationLog],
    adjudicated: AnnotationLog | None = None,
    *,
    limit: float = MOST_CLUES,
) -> list[Decision]:
    """What becomes of each question, in the order of `questions` (as `coarse_filter`
    gives them); logs are as `read_logs` gives them.

    A question is labelled by those who finished it, on the images that all of them were
    shown. Where annotators differ, on an image or in the answer, and also where one
    skipped it and ticked otherwise, it waits until the adjudicator has ruled on every
    image in dispute; then the adjudicator's ticks and answers hold. Where they agree,
    all answers that were given are accepted. It is kept when 0 < clue rate ≤ `limit`. A
    question that was dropped before stays dropped, but carries its labels if it has
    any.
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
    """Write the questions that are kept to <folder>/annotations.jsonl (Visual-RAG,
    version 2), and beside it a parameter file for `vrag run`; returns the former.

    The parameter file is named as the folder. It tells where images, articles and names
    are; what else the notebooks need keeps its defaults. Raises `VragError` when no
    question is kept, when the folder holds a benchmark over other images, and when it
    cannot be written; what is there stays.
    """
    folder = Path(folder)
    annotations, parameters = folder / "annotations.jsonl", folder / f"{folder.name}.yaml"
    kept = [each for each in decisions if each.fate == "kept"]
    if not kept:
        fates = ", ".join(
            f"{count} {fate}" for fate, count in Counter(each.fate for each in decisions).items()
        )
        raise VragError(
            f"{annotations}: no question is kept, so no benchmark is written"
            f" ({fates or 'there are none'}). Annotate in the panel, and name its file among those"
            " that count."
        )
    rows = [
        {
            "question": each.question,
            "answer": list(each.answers),
            "sn": each.species,
            "images": dict(each.labels),
            "y_rate": each.clue_rate,
            "y_count": sum(each.labels.values()),
            "is_changed_v2": "unchanged",
        }
        for each in kept
    ]
    data = {"annotations": shown(annotations), "image_root": shown(image_root), "name": name}
    both = (
        {"pages": shown(articles), "species_list": shown(species)} if articles and species else {}
    )
    values = {
        "notebooks": ["00_tour", "visual_rag"],
        "data": data,
        **dict.fromkeys(_MORE, NOT_GIVEN),
        **({"articles": both} if both else {}),
        "query_number": 0,
        "figures_dir": f"runs/figures-{folder.name}",
        "trec_dir": f"runs/trec-{folder.name}",
    }
    try:
        before = _images_before(parameters)
        if before not in (None, data["image_root"]):
            raise VragError(
                f"{folder}: holds a benchmark over {before!r}; this one is over"
                f" {data['image_root']!r}. Choose another folder for it."
            )
        write_file(annotations, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        write_file(parameters, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))
    except OSError as error:
        raise VragError(
            f"{folder}: the benchmark cannot be written ({error.strerror}). Choose another folder,"
            " or free space; the annotators' logs hold everything."
        ) from error
    return annotations


def _images_before(parameters: Path) -> str | None:
    """The image folder of the benchmark that a parameter file is beside; None without."""
    if not parameters.is_file():
        return None
    values = yaml.safe_load(parameters.read_text(encoding="utf-8")) or {}
    return str(values.get("data", values).get("image_root"))


def _decide(
    row: Any, logs: Sequence[AnnotationLog], adjudicated: AnnotationLog | None, limit: float
) -> Decision:
    done, votes = finished(logs, row.question_id), given(logs, row.question_id)
    differ = bool(disputed_images(votes)) or answers_differ(votes)
    ruling = (
        finished([adjudicated], row.question_id).get(adjudicated.annotator)
        if adjudicated and differ
        else None
    )
    unruled = [
        doc_id for doc_id in disputed_images(votes) if ruling is None or doc_id not in ruling.labels
    ]
    waits = differ and (ruling is None or bool(unruled))
    labels = (
        {}
        if waits
        else dict(sorted((agreed_labels(votes) | (ruling.labels if ruling else {})).items()))
    )
    answers = (
        split_answers(ruling.answer) if ruling and ruling.answer.strip() else answers_of(votes)
    )
    share = sum(labels.values()) / len(labels) if labels else np.nan
    skipped = any(
        log.votes[row.question_id].status == "skipped"
        for log in logs
        if row.question_id in log.votes
    )
    checks = [
        (bool(row.dropped) and not row.judged + row.unjudged, "dropped before", row.dropped),
        (bool(row.dropped), "dropped by the filter", row.dropped),
        (not done and skipped, "skipped", "too many of the first images show it"),
        (not done, "not annotated", "nobody has finished it"),
        (
            waits,
            "waits for adjudication",
            (
                f"annotators differ on {len(unruled)} images that are not ruled on"
                if unruled
                else "annotators differ in the answer"
            ),
        ),
        (not labels, "not annotated", "no image was shown to all who finished it"),
        (share == 0, "no clue", "no image shows it"),
        (share > limit, "too common", f"the clue rate {share:.1%} is above {limit:.0%}"),
        (not answers, "waits for adjudication", "nobody gave an answer"),
    ]
    fate, why = next(((fate, why) for holds, fate, why in checks if holds), ("kept", ""))
    return Decision(
        row.question_id,
        row.species,
        row.question,
        fate,
        why,
        row.rate,
        labels,
        answers,
        tuple(done),
    )
