"""Answers labelled by hand: one at a time, with what was accepted, saved at every click."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.judging.labels import COLUMNS, LABELS, read_labels, write_labels
from vrag_kit.types import Benchmark
from vrag_kit.widgets.panel import Panel
from vrag_kit.widgets.pictures import thumbnail
from vrag_kit.workspace import shown

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


class Labelling(Panel):
    """The labelling panel.

    `buttons` maps true, partial, false, skip and back to its buttons; `place` is the
    answer shown, from 0; at the end it is their number.

    The buttons are above what is judged, so that they stay where they are. With the
    keyboard: Tab and Shift+Tab walk over them, Enter or Space presses one, and it keeps
    the focus. Other keys are JupyterLab's.
    """

    def __init__(
        self, benchmark: Benchmark, things: list[Thing], path: Path, labeller: str
    ) -> None:
        """Opens at the first of `things`, to be labelled in their order, without a label
        in `path`.
        """
        from ipywidgets import HTML, Button, HBox, VBox

        self.benchmark = benchmark
        self.things = things
        self.path = path
        self.labeller = labeller
        self.labels = _labels_of(path, labeller)
        with suppress(OSError):  # the first click will tell
            if not path.exists():  # so that what reads the labels finds that there are none yet
                write_labels(path, pd.DataFrame(columns=COLUMNS))

        self.progress = HTML()
        self.message = HTML()
        self.card = HTML()
        self.buttons = {
            name: Button(description=name, tooltip=HINTS[name])
            for name in (*LABELS, "skip", "back")
        }
        for name, button in self.buttons.items():
            button.on_click(partial(self._clicked, name))
        self.box = VBox([self.progress, HBox(list(self.buttons.values())), self.message, self.card])
        self.place = self._next(0)
        self._show()

    def __repr__(self) -> str:
        return (
            f"labelling panel: {self._done()} of {len(self.things)} answers labelled,"
            f" in {shown(self.path)}"
        )

    def _clicked(self, name: str, _: object) -> None:
        self.message.value = ""
        if name == "back":
            self.place = max(0, self.place - 1)
        elif self.place < len(self.things) and (name == "skip" or self._saved(name)):
            self.place = self._next(self.place + 1)
        self._show()

    def _saved(self, label: str) -> bool:
        """Put the label into the file as it is now on disk, where another tab may have
        written; on failure say so and stay.
        """
        try:
            labels = _labels_of(self.path, self.labeller) | {self.things[self.place]: label}
            rows = [(*thing, value, self.labeller) for thing, value in labels.items()]
            write_labels(self.path, pd.DataFrame(rows, columns=COLUMNS))
        except (OSError, VragError) as error:
            self.message.value = (
                f"<b>not saved:</b> {escape(str(error))}. Labels saved before are kept; click again"
                " once it is mended."
            )
            return False
        self.labels = labels
        return True

    def _next(self, start: int) -> int:
        """The first place from `start` on without a label; the end if there is none."""
        for place in range(start, len(self.things)):
            if self.things[place] not in self.labels:
                return place
        return len(self.things)

    def _done(self) -> int:
        return sum(thing in self.labels for thing in self.things)

    def _show(self) -> None:
        done = self._done()
        total = len(self.things)
        thing = self.things[self.place] if self.place < total else None
        where = f"{self.place + 1} of {total}" if thing else "the end"
        separator = ", " if thing else ": "
        self.progress.value = (
            f"{where}{separator}{done} labelled, {total - done} not;"
            f" saved in {escape(shown(self.path))}"
        )
        if thing:
            self.card.value = _card(self.benchmark, *thing)
        else:
            self.card.value = (
                "Thank you. What was skipped comes again when the panel is opened anew."
            )
        for name, button in self.buttons.items():
            said = thing is not None and self.labels.get(thing) == name
            button.disabled = self.place == 0 if name == "back" else thing is None
            button.button_style = "info" if said else ""
            button.icon = "check" if said else ""


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
