"""How far annotators agree, and where they do not: what an adjudicator must see (Visual-RAG, section 4.2, stage 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from vrag_kit.analysis.association import association
from vrag_kit.building.log import AnnotationLog, Vote

SHOWN_CLUES = 9
"""Clues that all agree on and that the adjudicator of a question sees beside the disputed images."""


@dataclass(frozen=True, slots=True)
class Disputes:
    """What an adjudicator must see, by question: `images`, `remarks` and `answers` of the annotation panel."""

    images: Mapping[str, tuple[str, ...]]
    remarks: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, str]


def annotator_agreement(logs: Sequence[AnnotationLog], *, seed: int = 0) -> pd.DataFrame:
    """Cohen's kappa of every two annotators on the images of the questions that both finished, with a 95 % interval over species.

    Columns first, second, kappa, ci_low, ci_high (in [−1, 1]; NaN as in `association`), n (images), questions, both, only_first, only_second, neither (images ticked by
    whom). Clues are rare, so that two annotators who tick nothing in common still agree on most images: kappa takes that out. Empty for fewer than two logs.
    """
    rows = []
    for first, second in combinations(logs, 2):
        together = [votes for question_id in first.votes if len(votes := finished([first, second], question_id)) == 2]
        pairs = [(a.species, a.labels[doc_id], b.labels[doc_id]) for a, b in (votes.values() for votes in together) for doc_id in a.labels if doc_id in b.labels]
        species, x, y = zip(*pairs, strict=True) if pairs else ((), (), ())
        kappa, ticked = association(x, y, species, measure="kappa", seed=seed), Counter(zip(x, y, strict=True))
        rows.append((first.annotator, second.annotator, kappa.value, kappa.ci_low, kappa.ci_high, kappa.n, len(together),
                     *(ticked[pair] for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))))
    return pd.DataFrame(rows, columns=["first", "second", "kappa", "ci_low", "ci_high", "n", "questions", "both", "only_first", "only_second", "neither"])


def find_disputes(logs: Sequence[AnnotationLog]) -> Disputes:
    """The questions whose annotators differ on an image or in the answer, with what to show: disputed images first, then up to `SHOWN_CLUES` clues on which all agree."""
    images: dict[str, tuple[str, ...]] = {}
    remarks: dict[str, dict[str, str]] = {}
    answers: dict[str, str] = {}
    for question_id in dict.fromkeys(question_id for log in logs for question_id in log.votes):
        votes = finished(logs, question_id)
        if in_dispute(votes):
            agreed = [doc_id for doc_id in shared_images(votes) if all(vote.labels[doc_id] for vote in votes.values())]
            images[question_id] = (*disputed_images(votes), *agreed[:SHOWN_CLUES])
            remarks[question_id] = {doc_id: _remark(votes, doc_id) for doc_id in images[question_id]}
            answers[question_id] = " | ".join(answers_of(votes.values()))
    return Disputes(images, remarks, answers)


def finished(logs: Iterable[AnnotationLog], question_id: str) -> dict[str, Vote]:
    """Annotator → vote of those who finished the question."""
    return {log.annotator: log.votes[question_id] for log in logs if question_id in log.votes and log.votes[question_id].status == "done"}


def shared_images(votes: Mapping[str, Vote]) -> list[str]:
    """The images that everybody was shown who finished the question, by name."""
    return sorted(set.intersection(*(set(vote.labels) for vote in votes.values()))) if votes else []


def disputed_images(votes: Mapping[str, Vote]) -> list[str]:
    """Those of them on which votes differ."""
    return [doc_id for doc_id in shared_images(votes) if len({vote.labels[doc_id] for vote in votes.values()}) > 1]


def in_dispute(votes: Mapping[str, Vote]) -> bool:
    """Whether votes differ on an image, or those who ticked clues in the answer."""
    said = [{answer.lower() for answer in answers_of([vote])} for vote in votes.values() if vote.clues]
    return bool(disputed_images(votes)) or any(each != said[0] for each in said)


def answers_of(votes: Iterable[Vote]) -> tuple[str, ...]:
    """All answers given, in order, each once, without regard to case; an annotator may give several, separated by "|"."""
    unique: dict[str, str] = {}
    for answer in (answer.strip() for vote in votes for answer in vote.answer.split("|")):
        unique.setdefault(answer.lower(), answer)
    return tuple(answer for answer in unique.values() if answer)


def _remark(votes: Mapping[str, Vote], doc_id: str) -> str:
    sides = {words: [name for name, vote in votes.items() if vote.labels[doc_id] == label] for words, label in (("clue for", 1), ("not for", 0))}
    return "; ".join(f"{words} {', '.join(names)}" for words, names in sides.items() if names)
