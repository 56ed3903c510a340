"""From votes to a benchmark: what becomes of each question, by the paper's rule 0 < clue rate ≤ 0.25 (Visual-RAG, section 4.2, stage 2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from vrag_kit.building.agreement import answers_of, finished, in_dispute, shared_images
from vrag_kit.building.log import AnnotationLog, Vote
from vrag_kit.building.presence import MOST_CLUES
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.workspace import shown

FATES = ("kept", "too common", "no clue", "waits for adjudication", "skipped", "not annotated", "dropped by the filter", "dropped before")
"""What can become of a question; those further back are decided earlier."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One question, and what became of it."""

    question_id: str
    species: str
    question: str
    fate: str                       # one of FATES
    why: str                        # in words; "" for one that is kept
    estimated: float                # the coarse filter's clue rate, in [0, 1]; NaN where it was not asked
    labels: Mapping[str, int]       # image → 1 (clue) or 0; empty until people have decided
    answers: tuple[str, ...]        # accepted answers, in the order in which they were given
    annotators: tuple[str, ...]     # who finished it

    @property
    def clue_rate(self) -> float:
        """Clues among the labelled images, in [0, 1]; NaN without any."""
        return sum(self.labels.values()) / len(self.labels) if self.labels else np.nan


def decide(questions: pd.DataFrame, logs: Sequence[AnnotationLog], adjudicated: AnnotationLog | None = None, *, limit: float = MOST_CLUES) -> list[Decision]:
    """What becomes of each question, in the order of `questions` (question_id, species, question, dropped, rate).

    A question is labelled by those who finished it, on the images that all of them were shown. Where they differ, on an image or in the answer, it waits until the adjudicator has
    finished it; then the adjudicator's votes hold for the images that were shown again, and the adjudicator's answers. Where they agree, all answers that were given are
    accepted. It is kept when 0 < clue rate ≤ `limit`. A question that was dropped before stays dropped, but carries its labels if it has any.
    """
    return [_decide(row.question_id, row.species, row.question, row.dropped, row.rate, logs, adjudicated, limit) for row in questions.itertuples()]


def write_benchmark(path: Path | str, decisions: Sequence[Decision]) -> int:
    """Write the questions that are kept as Visual-RAG annotations of version 2, which `load_visual_rag` reads; returns how many.

    Raises `VragError` when none is kept, since that is no benchmark, and when the file cannot be written; a file that is there stays.
    """
    kept = [each for each in decisions if each.fate == "kept"]
    if not kept:
        fates = ", ".join(f"{count} {fate}" for fate, count in Counter(each.fate for each in decisions).items())
        raise VragError(f"{path}: no question is kept, so there is no benchmark to write ({fates or 'there are no questions'}). Annotate in the panel, then run this again.")
    rows = [{"question": each.question, "answer": list(each.answers), "sn": each.species, "images": dict(each.labels), "y_rate": each.clue_rate,
             "y_count": sum(each.labels.values()), "is_changed_v2": "unchanged"} for each in kept]
    try:
        write_file(Path(path), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    except OSError as error:
        raise VragError(f"{path}: the benchmark cannot be written ({error.strerror}). Choose another file, or free space; the annotators' logs hold everything.") from error
    return len(rows)


def write_parameters(path: Path | str, annotations: Path, image_root: Path, name: str) -> None:
    """Write a parameter file with which `vrag run` runs the other notebooks on the benchmark; what else they need keeps its defaults.

    Raises `OSError` when it cannot be written.
    """
    stem = Path(path).stem
    files = {key: shown(file) for key, file in (("annotations", annotations), ("image_root", image_root))}
    values = {"field_guide": "", "benchmark_name": name, **files, "figures_dir": f"runs/figures-{stem}", "trec_dir": f"runs/trec-{stem}"}
    write_file(Path(path), yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def _decide(question_id: str, species: str, question: str, dropped: str, rate: float, logs: Sequence[AnnotationLog], adjudicated: AnnotationLog | None, limit: float) -> Decision:
    votes = finished(logs, question_id)
    ruling = finished([adjudicated], question_id).get(adjudicated.annotator) if adjudicated else None
    waits = in_dispute(votes) and ruling is None
    labels = {} if waits else _labels(votes, ruling)
    answers = answers_of([ruling]) if ruling and ruling.answer.strip() else answers_of(vote for vote in votes.values() if vote.clues)
    share = sum(labels.values()) / len(labels) if labels else np.nan
    skipped = any(log.votes[question_id].status == "skipped" for log in logs if question_id in log.votes)
    checks = [
        (bool(dropped) and not np.isfinite(rate), "dropped before", dropped),
        (bool(dropped), "dropped by the filter", dropped),
        (not votes and skipped, "skipped", "too many of the first images show it"),
        (not votes, "not annotated", "nobody has finished it"),
        (waits, "waits for adjudication", "annotators differ"),
        (not labels, "not annotated", "no image was shown to all who finished it"),
        (share == 0, "no clue", "no image shows it"),
        (share > limit, "too common", f"the clue rate {share:.1%} is above {limit:.0%}"),
        (not answers, "waits for adjudication", "nobody gave an answer"),
    ]
    fate, why = next(((fate, why) for holds, fate, why in checks if holds), ("kept", ""))
    return Decision(question_id, species, question, fate, why, rate, labels, answers, tuple(votes))


def _labels(votes: Mapping[str, Vote], ruling: Vote | None) -> dict[str, int]:
    """What all who finished it say of each image, or the ruling on those that it was shown."""
    ruled = ruling.labels if ruling else {}
    return {doc_id: ruled.get(doc_id, next(iter(votes.values())).labels[doc_id]) for doc_id in shared_images(votes)}
