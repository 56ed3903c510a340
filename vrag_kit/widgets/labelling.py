"""Answers labelled by hand: one at a time, with what was accepted, saved at every click."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.labels import COLUMNS, read_labels, write_labels
from vrag_kit.types import Benchmark
from vrag_kit.widgets.one_by_one import OneByOne
from vrag_kit.widgets.pictures import thumbnail

if TYPE_CHECKING:
    from IPython.display import HTML

CLUES = 4
"""Pictures that are shown of a question's clues, at most."""
HINTS = {
    "true": "the answer is right",
    "partial": "partly right",
    "false": "wrong",
    "skip": "leave it without a label for now",
    "back": "to the answer before",
}
"""What each button means."""

Thing = tuple[str, str]
"""What gets a label: (query_id, answer)."""


class Labelling(OneByOne[Thing]):
    """The labelling panel, with the buttons true, partial, false, skip and back."""

    done_is = "labelled"

    def __init__(
        self, benchmark: Benchmark, things: list[Thing], path: Path, labeller: str
    ) -> None:
        """Opens at the first of `things`, to be labelled in their order, without a label
        in `path`.
        """
        self.benchmark = benchmark
        self.labeller = labeller
        super().__init__(things, _labels_of(path, labeller), path, HINTS)
        with suppress(OSError):  # the first click will tell
            if not path.exists():  # so that what reads the labels finds that there are none yet
                write_labels(path, pd.DataFrame(columns=COLUMNS))

    def keep(self, thing: Thing, name: str) -> dict[Thing, str]:
        """Put the label into the file."""
        labels = _labels_of(self.path, self.labeller) | {thing: name}
        rows = [(*key, value, self.labeller) for key, value in labels.items()]
        write_labels(self.path, pd.DataFrame(rows, columns=COLUMNS))
        return labels

    def card_of(self, thing: Thing) -> str:
        """The question, what was accepted, the answer, and clues."""
        return _card(self.benchmark, *thing)


def label_answers(
    benchmark: Benchmark, sample: pd.DataFrame, path: Path | str, labeller: str
) -> Labelling:
    """A panel to label the answers of `sample` (from `sample_to_label`) as true,
    partial or false; labels go to the CSV file `path` after every click.

    Equal answers to a query are shown once, the judge's verdict never. A file that is
    not there is made, without labels; one that exists is gone on with, at the first
    answer without a label, and keeps its labels of other answers. Several people use a
    file each: raises `VragError` when `path` holds labels of another `labeller`, for a
    query that `benchmark` lacks, and as `read_labels`.
    """
    if not labeller:
        raise VragError("the labeller is empty; expected a name, which is kept with every label.")
    things = list(dict.fromkeys(zip(sample["query_id"], sample["answer"], strict=True)))
    if unknown := [query_id for query_id, _ in things if query_id not in benchmark.queries]:
        raise VragError(
            f"the sample holds an answer to {unknown[0]!r}, which is no query of {benchmark.name}."
            " Draw it from answers to this benchmark."
        )
    return Labelling(benchmark, things, Path(path), labeller)


def labels_table(benchmark: Benchmark, labels: pd.DataFrame) -> HTML:
    """Labels with their question and its accepted answers, as a table to read without a
    kernel; all text is escaped.
    """
    from IPython.display import HTML

    columns = ("question", "accepted", "answer", "label", "labeller")
    head = "".join(f"<th style='text-align:left'>{name}</th>" for name in columns)
    rows = []
    for query_id, *said in labels[COLUMNS].itertuples(index=False):
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


def _labels_of(path: Path, labeller: str) -> dict[Thing, str]:
    """The labels in a file that may not exist."""
    if not path.exists():
        return {}
    labels = read_labels(path)
    if others := sorted(set(labels["labeller"]) - {labeller}):
        raise VragError(
            f"{path}: found labels of {others[0]!r}, expected only those of {labeller!r}. Choose"
            " another file: one for each labeller."
        )
    things = zip(labels["query_id"], labels["answer"], strict=True)
    return dict(zip(things, labels["label"], strict=True))


def _card(benchmark: Benchmark, query_id: str, answer: str) -> str:
    query = benchmark.queries[query_id]
    clues = benchmark.relevant(query_id)[:CLUES]
    pictures = "".join(thumbnail(benchmark, doc_id) for doc_id in clues)
    return (
        f"<div style='line-height:1.5'><p><b>{escape(query.text)}</b></p>"
        f"<p>accepted: {escape(' | '.join(query.answers))}</p>"
        "<p style='font-size:130%'>answer:"
        f" <b style='white-space:pre-wrap'>{escape(answer)}</b></p>"
        f"<div>{pictures}</div></div>"
    )
