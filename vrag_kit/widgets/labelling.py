"""Label answers by hand: one answer at a time beside its question, the accepted answers
and some clues, saved after every click.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path

import ipywidgets
import pandas as pd
from IPython.display import HTML

from vrag_kit.errors import VragError
from vrag_kit.judging.labels import COLUMNS, LABELS, read_labels, write_labels
from vrag_kit.types import Benchmark
from vrag_kit.widgets.pictures import thumbnail
from vrag_kit.workspace import shown

CLUES = 4  # shown for a question
HINTS = {
    "true": "the answer is right",
    "partial": "partly right",
    "false": "wrong",
    "skip": "leave it without a label for now",
    "back": "to the answer before",
}


class Labelling(ipywidgets.VBox):
    """The labelling panel.

    `buttons` maps true, partial, false, skip and back to its buttons; `place` is the
    answer shown, from 0; at the end it is their number.

    The buttons are above what is judged, so that they stay where they are. With the
    keyboard: Tab and Shift+Tab walk over them, Enter or Space presses one, and it keeps
    the focus. Other keys are JupyterLab's.
    """

    def __init__(
        self, benchmark: Benchmark, things: list[tuple[str, str]], path: Path, labeller: str
    ) -> None:
        """`things` are the (query_id, answer) to label, in order.

        Opens at the first without a label in `path`.
        """
        self.benchmark, self.things, self.path, self.labeller = benchmark, things, path, labeller
        self.labels = _labels_of(path, labeller)
        with suppress(OSError):  # the first click will tell
            if not path.exists():  # so that what reads the labels finds that there are none yet
                write_labels(path, pd.DataFrame(columns=COLUMNS))
        self.progress, self.card, self.message = (
            ipywidgets.HTML(),
            ipywidgets.HTML(),
            ipywidgets.HTML(),
        )
        self.buttons = {
            name: ipywidgets.Button(description=name, tooltip=HINTS[name])
            for name in (*LABELS, "skip", "back")
        }
        for name, button in self.buttons.items():
            button.on_click(partial(self._clicked, name))
        super().__init__(
            [self.progress, ipywidgets.HBox(list(self.buttons.values())), self.message, self.card]
        )
        self.place = self._next(0)
        self._show()

    def __repr__(self) -> str:
        return (
            f"labelling panel: {sum(thing in self.labels for thing in self.things)} of"
            f" {len(self.things)} answers labelled, in {shown(self.path)}"
        )

    def _clicked(self, name: str, _: ipywidgets.Button) -> None:
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
        thing = self.things[self.place]
        try:
            labels = {**_labels_of(self.path, self.labeller), thing: label}
            write_labels(
                self.path,
                pd.DataFrame(
                    [(*key, value, self.labeller) for key, value in labels.items()], columns=COLUMNS
                ),
            )
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
        return next(
            (
                place
                for place in range(start, len(self.things))
                if self.things[place] not in self.labels
            ),
            len(self.things),
        )

    def _show(self) -> None:
        done, total, there = (
            sum(thing in self.labels for thing in self.things),
            len(self.things),
            self.place < len(self.things),
        )
        self.progress.value = (
            f"{self.place + 1} of {total}, " if there else "the end: "
        ) + f"{done} labelled, {total - done} not; saved in {escape(shown(self.path))}"
        self.card.value = (
            _card(self.benchmark, *self.things[self.place])
            if there
            else "Thank you. What was skipped comes again when the panel is opened anew."
        )
        for name, button in self.buttons.items():
            button.disabled = not there if name != "back" else self.place == 0
            said = there and self.labels.get(self.things[self.place]) == name
            button.button_style, button.icon = ("info", "check") if said else ("", "")


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
    """Labels with their question and its accepted answers as a table to read without a
    kernel; all text is escaped.
    """
    head = "".join(
        f"<th style='text-align:left'>{name}</th>"
        for name in ("question", "accepted", "answer", "label", "labeller")
    )
    rows = []
    for query_id, answer, label, labeller in labels[COLUMNS].itertuples(index=False):
        query = benchmark.queries.get(query_id)
        asked = (
            (query.text, " | ".join(query.answers))
            if query
            else (f"{query_id}, which {benchmark.name} does not have", "")
        )
        rows.append(
            "".join(
                f"<td style='text-align:left'>{escape(text)}</td>"
                for text in (*asked, answer, label, labeller)
            )
        )
    return HTML(f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")


def _labels_of(path: Path, labeller: str) -> dict[tuple[str, str], str]:
    """What a file that may not exist holds: (query_id, answer) → label."""
    if not path.exists():
        return {}
    labels = read_labels(path)
    if others := sorted(set(labels["labeller"]) - {labeller}):
        raise VragError(
            f"{path}: found labels of {others[0]!r}, expected only those of {labeller!r}. Choose"
            " another file: one for each labeller."
        )
    return {
        (query_id, answer): label
        for query_id, answer, label in labels[["query_id", "answer", "label"]].itertuples(
            index=False
        )
    }


def _card(benchmark: Benchmark, query_id: str, answer: str) -> str:
    query = benchmark.queries[query_id]
    pictures = "".join(
        thumbnail(benchmark, doc_id) for doc_id in benchmark.relevant(query_id)[:CLUES]
    )
    return (
        f"<div style='line-height:1.5'><p><b>{escape(query.text)}</b></p><p>accepted:"
        f" {escape(' | '.join(query.answers))}</p><p style='font-size:130%'>answer: <b"
        f" style='white-space:pre-wrap'>{escape(answer)}</b></p><div>{pictures}</div></div>"
    )
