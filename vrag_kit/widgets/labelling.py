"""Panel to label answers by hand, one at a time; every click is saved."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.human_labels import HUMAN_LABEL_COLUMNS, read_human_labels, write_human_labels
from vrag_kit.types import Benchmark
from vrag_kit.widgets.annotation import AnnotationPanel
from vrag_kit.widgets.images import document_thumbnail

if TYPE_CHECKING:
    from IPython.display import HTML

CLUES = 4
"""Maximum number of a question's clues that are shown."""
HINTS = {
    "true": "the answer is right",
    "partial": "partially correct",
    "false": "wrong",
    "skip": "leave it without a label for now",
    "back": "to the answer before",
}
"""Button → its tooltip."""

Thing = tuple[str, str]
"""The unit that gets a label: (query_id, answer)."""


class AnswerAnnotationPanel(AnnotationPanel[Thing]):
    """Panel to label answers, with the buttons true, partial, false, skip and back."""

    done_is = "labelled"

    def __init__(
        self, benchmark: Benchmark, things: list[Thing], path: Path, annotator: str
    ) -> None:
        """Opens at the first of `things` without a label in `path`.
        They are labelled in their order.
        """
        self.benchmark = benchmark
        self.annotator = annotator
        super().__init__(things, _labels_of(path, annotator), path, HINTS)
        with suppress(OSError):  # the first click will tell
            if not path.exists():  # so that what reads the labels finds that there are none yet
                write_human_labels(path, pd.DataFrame(columns=HUMAN_LABEL_COLUMNS))

    def save(self, thing: Thing, name: str) -> dict[Thing, str]:
        """Write the label to the file, and return all labels."""
        labels = _labels_of(self.path, self.annotator) | {thing: name}
        rows = [(*key, value, self.annotator) for key, value in labels.items()]
        write_human_labels(self.path, pd.DataFrame(rows, columns=HUMAN_LABEL_COLUMNS))
        return labels

    def render_card(self, thing: Thing) -> str:
        """Return the question, the accepted answers, the answer and clues as HTML."""
        return _card(self.benchmark, *thing)


def label_answers(
    benchmark: Benchmark, sample: pd.DataFrame, path: Path | str, annotator: str
) -> AnswerAnnotationPanel:
    """Return a panel to label the answers of `sample` as true, partial or false.
    `sample` is from `annotation_sample`. Every click saves the label to the CSV file `path`.

    Equal answers to a query are shown once, the judge's verdict never. A missing file is created,
    without labels. An existing one is continued at the first answer without a label, and keeps its
    labels of other answers. Each annotator uses a separate file: raises `VragError` when `path`
    holds labels of another `annotator`, for a query that `benchmark` lacks, and as
    `read_human_labels`.
    """
    if not annotator:
        raise VragError("the annotator is empty; expected a name, which is kept with every label.")
    things = list(dict.fromkeys(zip(sample["query_id"], sample["answer"], strict=True)))
    if unknown := [query_id for query_id, _ in things if query_id not in benchmark.queries]:
        raise VragError(
            f"the sample holds an answer to {unknown[0]!r}, which is no query of {benchmark.name}."
            " Draw it from answers to this benchmark."
        )
    return AnswerAnnotationPanel(benchmark, things, Path(path), annotator)


def labels_table(benchmark: Benchmark, labels: pd.DataFrame) -> HTML:
    """Return labels with question and accepted answers as a static HTML table.
    All text is escaped.
    """
    from IPython.display import HTML

    columns = ("question", "accepted", "answer", "label", "annotator")
    head = "".join(f"<th style='text-align:left'>{name}</th>" for name in columns)
    rows = []
    for query_id, *said in labels[HUMAN_LABEL_COLUMNS].itertuples(index=False):
        cells = [*_asked(benchmark, query_id), *said]
        row = "".join(f"<td style='text-align:left'>{escape(text)}</td>" for text in cells)
        rows.append(f"<tr>{row}</tr>")
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>"
    return HTML(table)  # type: ignore[no-untyped-call]  # IPython's own lacks types


def _asked(benchmark: Benchmark, query_id: str) -> tuple[str, str]:
    """A query's question and its accepted answers."""
    if query := benchmark.queries.get(query_id):
        return query.text, " | ".join(query.answers)
    return f"{query_id}, which {benchmark.name} does not have", ""


def _labels_of(path: Path, annotator: str) -> dict[Thing, str]:
    """The labels in a file that may not exist."""
    if not path.exists():
        return {}
    labels = read_human_labels(path)
    if others := sorted(set(labels["annotator"]) - {annotator}):
        raise VragError(
            f"{path}: found labels of {others[0]!r}, expected only those of {annotator!r}. Choose"
            " another file: one for each annotator."
        )
    things = zip(labels["query_id"], labels["answer"], strict=True)
    return dict(zip(things, labels["label"], strict=True))


def _card(benchmark: Benchmark, query_id: str, answer: str) -> str:
    query = benchmark.queries[query_id]
    clues = benchmark.relevant(query_id)[:CLUES]
    pictures = "".join(document_thumbnail(benchmark, doc_id) for doc_id in clues)
    return (
        f"<div style='line-height:1.5'><p><b>{escape(query.text)}</b></p>"
        f"<p>accepted answers: {escape(' | '.join(query.answers))}</p>"
        "<p style='font-size:130%'>answer:"
        f" <b style='white-space:pre-wrap'>{escape(answer)}</b></p>"
        f"<div>{pictures}</div></div>"
    )
