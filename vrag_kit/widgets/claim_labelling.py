"""Panel to label claims against evidence by hand, one claim and item at a time.
Every click is saved.
"""

from __future__ import annotations

from contextlib import suppress
from html import escape
from pathlib import Path

import pandas as pd

from vrag_kit.claims.checking import as_evidence, reference_answers
from vrag_kit.claims.human_labels import (
    ClaimPair,
    pairs_to_label,
    read_claim_labels,
    write_claim_labels,
)
from vrag_kit.claims.verdicts import ACCEPTED, EntailmentLabel
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark
from vrag_kit.widgets.annotation import AnnotationPanel
from vrag_kit.widgets.images import image_html

SIDE = 512
"""Longer side of an image, in pixels."""
HINTS = {
    "ENTAILMENT": "what is shown says that the claim is true",
    "NEUTRAL": "what is shown does not settle it",
    "CONTRADICTION": "what is shown says that the claim is false",
    "skip": "leave it without a label for now",
    "back": "to the claim before",
}
"""Button → its tooltip."""


class ClaimAnnotationPanel(AnnotationPanel[ClaimPair]):
    """Panel to label claims, with a button per label, skip and back."""

    done_is = "labelled"

    def __init__(
        self,
        benchmark: Benchmark,
        things: list[ClaimPair],
        path: Path,
        annotator: str,
    ) -> None:
        """Opens at the first of `things` without a label in `path`."""
        self.benchmark = benchmark
        self.annotator = annotator
        super().__init__(things, _words(self._labels(path)), path, HINTS)
        with suppress(OSError):  # the first click will tell
            if not path.exists():  # so that what reads the labels finds that there are none yet
                write_claim_labels(path, {}, annotator=annotator)

    def save(self, thing: ClaimPair, name: str) -> dict[ClaimPair, str]:
        """Write the label to the file, and return all labels."""
        labels = self._labels(self.path) | {thing: EntailmentLabel(name)}
        write_claim_labels(self.path, labels, annotator=self.annotator)
        return _words(labels)

    def render_card(self, thing: ClaimPair) -> str:
        """Return the question, the claim, and the item that it is checked against, as HTML."""
        question = self.benchmark.queries[thing.query_id].text
        return (
            f"<div style='line-height:1.5'><p>{escape(question)}</p><p style='font-size:130%'>"
            f"claim: <b>{escape(thing.claim)}</b></p>{self._shown(thing)}</div>"
        )

    def _shown(self, thing: ClaimPair) -> str:
        if thing.item == ACCEPTED:
            right = " | ".join(reference_answers(self.benchmark.queries[thing.query_id]))
            return f"<p>accepted answers: {escape(right)}</p>"
        if thing.item not in self.benchmark.corpus:  # an answer's words
            return f"<p style='white-space:pre-wrap'>{escape(thing.item)}</p>"
        item = as_evidence(self.benchmark.corpus[thing.item])
        text = escape(item.text or "")
        picture = "" if item.image is None else image_html(item.image, side=SIDE)
        return f"{picture}<p style='white-space:pre-wrap'>{text}</p>"

    def _labels(self, path: Path) -> dict[ClaimPair, EntailmentLabel]:
        """The labels in a file that may not exist."""
        return read_claim_labels(path, annotator=self.annotator) if path.exists() else {}


def label_claims(
    benchmark: Benchmark,
    sample: pd.DataFrame,
    path: Path | str,
    annotator: str,
) -> ClaimAnnotationPanel:
    """Return a panel to label claims against the evidence of each answer and the accepted answers.
    `sample` is `annotation_sample` of a table of `check_answers`. Labels are saved to the CSV file
    `path` after every click.

    The checker's verdict is never shown, and a claim and item that several answers share is shown
    once. An existing file is continued. Each
    annotator uses a separate file: raises `VragError` when `path` holds labels of another
    `annotator`, for a query that `benchmark` lacks, and as `read_claim_labels`.
    """
    if not annotator:
        raise VragError("the annotator is empty; expected a name, which is kept with every label.")
    things = pairs_to_label(sample)
    if unknown := [held.query_id for held in things if held.query_id not in benchmark.queries]:
        raise VragError(
            f"the sample holds an answer to {unknown[0]!r}, which is no query of {benchmark.name}."
            " Draw it from answers to this benchmark."
        )
    return ClaimAnnotationPanel(benchmark, things, Path(path), annotator)


def _words(labels: dict[ClaimPair, EntailmentLabel]) -> dict[ClaimPair, str]:
    return {held: label.value for held, label in labels.items()}
