"""Claims held against evidence by hand: one claim and item at a time, saved at every
click.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.claims_asked import references
from vrag_kit.analysis.claims_checked import as_picture
from vrag_kit.analysis.claims_labelled import to_label
from vrag_kit.errors import VragError
from vrag_kit.judging.claim_labels import (
    ACCEPTED,
    Held,
    read_claim_labels,
    write_claim_labels,
)
from vrag_kit.judging.claims import Relation
from vrag_kit.types import Benchmark, Evidence
from vrag_kit.widgets.one_by_one import OneByOne
from vrag_kit.widgets.pictures import figure

SIDE = 512
"""Pixels of a picture's longer side."""
HINTS = {
    "ENTAILMENT": "what is shown says that the claim is true",
    "NEUTRAL": "what is shown does not settle it",
    "CONTRADICTION": "what is shown says that the claim is false",
    "skip": "leave it without a label for now",
    "back": "to the claim before",
}
"""What each button means."""


class ClaimLabelling(OneByOne[Held]):
    """The panel, with a button a label, skip and back."""

    done_is = "labelled"

    def __init__(
        self,
        benchmark: Benchmark,
        things: list[Held],
        path: Path,
        labeller: str,
        shown_as: Callable[[Evidence], Evidence],
    ) -> None:
        """Opens at the first of `things` without a label in `path`."""
        self.benchmark = benchmark
        self.labeller = labeller
        self._shown_as = shown_as
        super().__init__(things, _words(self._labels(path)), path, HINTS)
        with suppress(OSError):  # the first click will tell
            if not path.exists():  # so that what reads the labels finds that there are none yet
                write_claim_labels(path, {}, labeller=labeller)

    def keep(self, thing: Held, name: str) -> dict[Held, str]:
        """Put the label into the file."""
        labels = self._labels(self.path) | {thing: Relation(name)}
        write_claim_labels(self.path, labels, labeller=self.labeller)
        return _words(labels)

    def card_of(self, thing: Held) -> str:
        """The question, the claim, and what it is held against."""
        question = self.benchmark.queries[thing.query_id].text
        return (
            f"<div style='line-height:1.5'><p>{escape(question)}</p><p style='font-size:130%'>"
            f"claim: <b>{escape(thing.claim)}</b></p>{self._shown(thing)}</div>"
        )

    def _shown(self, thing: Held) -> str:
        if thing.item == ACCEPTED:
            right = " | ".join(references(self.benchmark.queries[thing.query_id]))
            return f"<p>accepted: {escape(right)}</p>"
        if thing.item not in self.benchmark.corpus:  # an answer's words
            return f"<p style='white-space:pre-wrap'>{escape(thing.item)}</p>"
        item = self._shown_as(self.benchmark.corpus[thing.item])
        text = escape(item.text or "")
        picture = "" if item.image is None else figure(item.image, side=SIDE)
        return f"{picture}<p style='white-space:pre-wrap'>{text}</p>"

    def _labels(self, path: Path) -> dict[Held, Relation]:
        """The labels in a file that may not exist."""
        return read_claim_labels(path, labeller=self.labeller) if path.exists() else {}


def label_claims(
    benchmark: Benchmark,
    sample: pd.DataFrame,
    path: Path | str,
    labeller: str,
    *,
    column: str = "answer",
    shown_as: Callable[[Evidence], Evidence] = as_picture,
) -> ClaimLabelling:
    """A panel to hold the claims of `sample` (`sample_to_label` of a table of
    `with_claims`) against what each answer was shown, and against the accepted answers;
    labels go to the CSV file `path` after every click.

    `column` and `shown_as` are those of `with_claims`. The checker's verdict is never
    shown, and what several answers have in common is shown once. A file that exists is
    gone on with. Several people use a file each: raises `VragError` when `path` holds
    labels of another `labeller`, for a query that `benchmark` lacks, and as
    `read_claim_labels`.
    """
    if not labeller:
        raise VragError("the labeller is empty; expected a name, which is kept with every label.")
    things = to_label(sample, column=column)
    if unknown := [held.query_id for held in things if held.query_id not in benchmark.queries]:
        raise VragError(
            f"the sample holds an answer to {unknown[0]!r}, which is no query of {benchmark.name}."
            " Draw it from answers to this benchmark."
        )
    return ClaimLabelling(benchmark, things, Path(path), labeller, shown_as)


def _words(labels: dict[Held, Relation]) -> dict[Held, str]:
    return {held: label.value for held, label in labels.items()}
