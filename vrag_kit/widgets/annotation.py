"""Panels that show items one by one and save a label for each, and their label files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from vrag_kit.benchmarks.sources import write_csv_rows
from vrag_kit.claims.checking import as_evidence, reference_answers
from vrag_kit.claims.human_labels import PAIR, pairs_to_label, read_annotator_labels
from vrag_kit.claims.verdicts import ACCEPTED
from vrag_kit.errors import VragError
from vrag_kit.files import display_path, project_path
from vrag_kit.judging.human_labels import HUMAN_LABEL_COLUMNS, read_human_labels
from vrag_kit.plotting.save_table import style_table
from vrag_kit.types import Benchmark
from vrag_kit.widgets.browser import Panel
from vrag_kit.widgets.html import card_html, image_html

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

Key = tuple[str, ...]
"""What gets a label: a query and its answer, claim and item, or setting."""
CLUES = 4
"""Maximum number of a question's clues that are shown."""
SIDE = 512
"""Longer side of an image that a claim is checked against, in pixels."""
ANSWER_HINTS = {"true": "the answer is right", "partial": "partially correct", "false": "wrong"}
CLAIM_HINTS = {
    "ENTAILMENT": "what is shown says that the claim is true",
    "NEUTRAL": "what is shown does not settle it",
    "CONTRADICTION": "what is shown says that the claim is false",
}
MOVE_HINTS = {"skip": "leave it for now", "back": "to the one before"}
"""Buttons that follow the labels → their tooltips."""


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The labels of one person in a CSV file, saved at every click.

    The file is read before a label is added, since another tab may have written to it, and replaced
    only once the new one is complete: a crash loses nothing.
    """

    path: Path
    key: Sequence[str]
    """Columns of what gets a label."""
    columns: Sequence[str]
    """All columns: those of the key, the label, what belongs to the label, and the person."""
    person: str
    read: Callable[[Path], pd.DataFrame]
    """Reads the file as text; raises `VragError` for a malformed one."""

    def rows(self) -> dict[Key, Key]:
        """Return the rows by key, none without a file. Raises `VragError` as `read` does, for rows
        of somebody else, and without the name of a person.
        """
        who = self.columns[-1]
        if not self.person:
            raise VragError(
                f"the {who} is empty; expected a name, which is saved with every label."
            )
        if not self.path.exists():
            return {}
        table = self.read(self.path)[list(self.columns)]
        if others := sorted(set(table[who]) - {self.person}):
            raise VragError(
                f"{self.path}: found labels of {others[0]!r}, expected only those of"
                f" {self.person!r}. Choose another file: one for each {who}."
            )
        return {row[: len(self.key)]: row for row in table.itertuples(index=False, name=None)}

    def write(self, rows: Mapping[Key, Key]) -> None:
        """Replace the file; raises `OSError` when it cannot be written."""
        write_csv_rows(self.path, self.columns, rows.values())


class AnnotationPanel(Panel):
    """Panel that steps through `things`; every click saves a label to a file.

    `buttons` maps labels, skip and back to their buttons; `rows` maps things to the rows of their
    labels; `place` is the index of the thing displayed, from 0, and at the end their number.

    The buttons are above the card, and therefore do not move. With the keyboard: Tab and Shift+Tab
    move between them, Enter or Space presses one, and it keeps the focus. Other keys are
    JupyterLab's.
    """

    done_is = "labelled"
    """Adjective for things that have a label."""

    def __init__(
        self,
        things: Sequence[Key],
        file: LabelFile,
        labels: Mapping[str, str],
        card: Callable[..., Markup],
    ) -> None:
        """Opens at the first of `things` without a label; a missing file is created.
        `labels` maps the buttons before skip and back to their tooltips; `card` makes the card of a
        thing. Raises `VragError` as `LabelFile.rows`.
        """
        from ipywidgets import HTML, Button, HBox, VBox

        self.things = things
        self.file = file
        self.render_card = card
        self.rows = file.rows()
        if not file.path.exists():
            with suppress(OSError):  # the first click will tell
                file.write({})
        self.progress = HTML()
        self.message = HTML()
        self.card = HTML()
        self.buttons = {}
        for name, hint in {**labels, **MOVE_HINTS}.items():
            self.buttons[name] = Button(description=name, tooltip=hint)
            self.buttons[name].on_click(partial(self.on_click, name))
        buttons = HBox(list(self.buttons.values()))
        self.box = VBox([self.progress, buttons, self.message, self.card])
        self.place = self._next(0)
        self.refresh()

    def __repr__(self) -> str:
        done = f"{self._done()} of {len(self.things)} {self.done_is}"
        return f"{type(self).__name__}: {done}, in {display_path(self.file.path)}"

    def label(self, thing: Key, name: str) -> Key:
        """Return what is saved for a click on the button `name`, from the label on."""
        return (name,)

    def on_click(self, name: str, _: object = None) -> None:
        """Handle a click on the button `name`."""
        self.message.value = ""
        if name == "back":
            self.place = max(0, self.place - 1)
        elif self.place < len(self.things) and (name == "skip" or self._save(name)):
            self.place = self._next(self.place + 1)
        self.refresh()

    def refresh(self) -> None:
        """Update progress, card and buttons."""
        done, total = self._done(), len(self.things)
        ended = self.place == total
        where = "the end: " if ended else f"{self.place + 1} of {total}, "
        self.progress.value = (
            f"{where}{done} {self.done_is}, {total - done} not; saved in"
            f" {escape(display_path(self.file.path))}"
        )
        label = ""
        if ended:
            self.card.value = "All done. Skipped items reappear when the panel is opened again."
        else:
            thing = self.things[self.place]
            self.card.value = self.render_card(*thing)
            if thing in self.rows:
                label = self.rows[thing][len(thing)]
        for name, button in self.buttons.items():
            button.disabled = self.place == 0 if name == "back" else ended
            button.button_style = "info" if name == label else ""
            button.icon = "check" if name == label else ""

    def _save(self, name: str) -> bool:
        """Save a label; where that fails, give the reason and return False."""
        thing = self.things[self.place]
        try:
            row = (*thing, *self.label(thing, name), self.file.person)
            rows = self.file.rows() | {thing: row}
            self.file.write(rows)
        except (OSError, VragError) as error:
            self.message.value = (
                f"<b>not saved:</b> {escape(str(error))}. Earlier labels are safe. Fix the problem"
                " and click again."
            )
            return False
        self.rows = rows
        return True

    def _next(self, start: int) -> int:
        """The first place from `start` on without a label; the end if there is none."""
        places = range(start, len(self.things))
        return next((n for n in places if self.things[n] not in self.rows), len(self.things))

    def _done(self) -> int:
        return sum(thing in self.rows for thing in self.things)


def label_answers(
    benchmark: Benchmark, sample: pd.DataFrame, path: Path | str, annotator: str
) -> AnnotationPanel:
    """Return a panel to label the answers of `sample` as true, partial or false.
    `sample` is from `annotation_sample`. Every click saves the label to the CSV file `path`.

    Equal answers to a query are shown once, the judge's verdict never. A missing file is created,
    without labels. An existing one is continued at the first answer without a label, and keeps its
    labels of other answers. Each annotator uses a separate file: raises `VragError` when `path`
    holds labels of another `annotator`, for a query that `benchmark` lacks, and as
    `read_human_labels`.
    """

    def card(query_id: str, answer: str) -> Markup:
        query = benchmark.queries[query_id]
        clues = benchmark.relevant(query_id)[:CLUES]
        facts = {"accepted answers": " | ".join(query.answers), "answer": answer}
        return card_html(query.text, facts, [image_html(benchmark.corpus[d].image) for d in clues])

    columns = HUMAN_LABEL_COLUMNS
    file = LabelFile(project_path(path), columns[:2], columns, annotator, read_human_labels)
    answers = zip(sample["query_id"], sample["answer"], strict=True)
    return AnnotationPanel(_known(answers, benchmark), file, ANSWER_HINTS, card)


def label_claims(
    benchmark: Benchmark, sample: pd.DataFrame, path: Path | str, annotator: str
) -> AnnotationPanel:
    """Return a panel to label claims against the evidence of each answer and the accepted answers.
    `sample` is `annotation_sample` of a table of `check_answers`. Labels are saved to the CSV file
    `path` after every click.

    The checker's verdict is never shown, and a claim and item that several answers share is shown
    once. A missing file is created, and an existing one continued. Each
    annotator uses a separate file: raises `VragError` when `path` holds labels of another
    `annotator`, for a query that `benchmark` lacks, and as `read_annotator_labels`.
    """

    def card(query_id: str, claim: str, item: str) -> Markup:
        query, facts = benchmark.queries[query_id], {"claim": claim}
        evidence = [item]  # the text of an answer
        if item == ACCEPTED:
            facts["accepted answers"] = " | ".join(reference_answers(query))
            evidence = []
        elif item in benchmark.corpus:
            document = as_evidence(benchmark.corpus[item])
            evidence = [image_html(document.image, side=SIDE), document.text or ""]
        return card_html(query.text, facts, evidence)

    def read(file: Path) -> pd.DataFrame:
        labels = read_annotator_labels(file, only=annotator).get(annotator, {})
        rows = [(*pair, label.value, annotator) for pair, label in labels.items()]
        return pd.DataFrame(rows, columns=columns, dtype=object)

    columns = [*PAIR, "label", "annotator"]
    file = LabelFile(project_path(path), PAIR, columns, annotator, read)
    return AnnotationPanel(_known(pairs_to_label(sample), benchmark), file, CLAIM_HINTS, card)


def labels_table(benchmark: Benchmark, labels: pd.DataFrame) -> Styler:
    """Return labels with question and accepted answers as a table for display.
    All text is escaped.
    """
    names, queries = labels["query_id"], benchmark.queries.values()
    questions = names.map({query.query_id: query.text for query in queries})
    accepted = names.map({query.query_id: " | ".join(query.answers) for query in queries})
    lacking = names + f", which {benchmark.name} does not have"
    table = labels.assign(question=questions.fillna(lacking), accepted=accepted.fillna(""))
    columns = ["question", "accepted", *HUMAN_LABEL_COLUMNS[1:]]
    return (
        style_table(table[columns])
        .hide(axis="index")
        .set_table_styles([{"selector": "th, td", "props": "text-align: left"}])
    )


def _known(things: Iterable[Key], benchmark: Benchmark) -> list[Key]:
    """Return each thing once; raises `VragError` for a query that the benchmark lacks."""
    unique = list(dict.fromkeys(things))
    if unknown := [key[0] for key in unique if key[0] not in benchmark.queries]:
        raise VragError(
            f"the sample holds an answer to {unknown[0]!r}, which is no query of {benchmark.name}."
            " Draw it from answers to this benchmark."
        )
    return unique
