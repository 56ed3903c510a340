"""Panel in which a person answers questions with options, one at a time, and its files of choices.
The seconds are measured, and every click is saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.tables import read_csv_rows, write_csv_rows
from vrag_kit.types import Benchmark, Context, DocId, Query
from vrag_kit.widgets.annotation import AnnotationPanel
from vrag_kit.widgets.cards import page_html
from vrag_kit.widgets.images import image_html

if TYPE_CHECKING:
    from IPython.display import HTML

CHOICE_COLUMNS = ["query_id", "setting", "option", "option_text", "seconds", "participant"]
Thing = tuple[str, str]
"""The unit that is answered: (query_id, setting)."""
ASKED = "#d55e00"
"""Frame colour of the query's image."""
_AT_REST = "Press <b>begin</b>: a question appears, and its seconds run until you answer or pause."
_HINTS = {
    "skip": "leave it without an answer for now",
    "back": "to the question before",
    "begin": "show the question and let its seconds run, or hide it while you are away",
}


def read_choices(path: Path | str) -> pd.DataFrame:
    """Read the options that one or several participants chose from a CSV file.

    The columns are query_id, setting, option (a letter), option_text, seconds (NaN if not
    measured), participant. Raises `VragError` naming the line for a missing column, a row that is
    too long or too short, an option that is no letter, invalid seconds, an empty name, and a
    question that one participant answered twice in a setting.
    """
    advice = "Write some with `multiple_choice_panel`, or name other files."
    rows = dict(read_csv_rows(Path(path), CHOICE_COLUMNS, "choices", advice))
    table = pd.DataFrame(list(rows.values()), list(rows), CHOICE_COLUMNS, dtype=object)
    key = ["query_id", "setting", "participant"]
    seconds = pd.to_numeric(table["seconds"].replace("", "nan"), errors="coerce")
    measured = table["seconds"] != ""
    checks = {
        "a letter A, B, C, … as option": ~table["option"].isin([*ascii_uppercase]),
        "a query_id, a setting and a participant": (table[key] == "").any(axis=1),
        "seconds from 0, or nothing": measured & ~seconds.between(0, math.inf, inclusive="left"),
        "one choice of a participant in a question and setting": table.duplicated(key),
    }
    for expected, wrong in checks.items():
        if wrong.any():
            row = table[wrong].iloc[0]
            found = ", ".join(map(repr, row))
            raise VragError(f"{path} line {row.name}: found {found}; expected {expected}.")
    return table.assign(seconds=seconds.astype(float)).reset_index(drop=True)


def write_choices(path: Path | str, choices: pd.DataFrame) -> None:
    """Write chosen options in the format of `read_choices`, replacing the file atomically. Raises
    `OSError` when it cannot be written.
    """
    seconds = choices["seconds"].map(lambda each: "" if pd.isna(each) else f"{each:.1f}")
    table = choices.assign(seconds=seconds)[CHOICE_COLUMNS]
    write_csv_rows(Path(path), CHOICE_COLUMNS, table.itertuples(index=False))


def option_text(query: Query, letter: str) -> str | None:
    """Return the text of an option; None for a letter that the question does not have."""
    return dict(zip(ascii_uppercase, query.choices, strict=False)).get(letter)


class MultipleChoicePanel(AnnotationPanel[Thing]):
    """Panel of questions, with a button for each letter, skip, back, and begin.
    begin reads pause while the seconds run.

    `seconds` is how long each thing was on the screen, over all its visits.
    """

    done_is = "answered"

    def __init__(
        self, benchmark: Benchmark, contexts: Sequence[Context], path: Path, participant: str
    ) -> None:
        """Opens, paused, at the first of `contexts` without an answer in `path`."""
        self.benchmark = benchmark
        self.contexts = {(each.query_id, each.setting): each for each in contexts}
        self.participant = participant
        self.running = False
        self._since = 0.0
        kept = _choices_in(path, participant, benchmark)
        self.seconds = dict(zip(_things(kept), kept["seconds"].fillna(0.0), strict=True))
        most = max((len(benchmark.queries[each].choices) for each, _ in self.contexts), default=0)
        hints = {letter: f"({letter}) is right" for letter in ascii_uppercase[:most]}
        super().__init__(list(self.contexts), _chosen(kept), path, {**hints, **_HINTS})

    def save(self, thing: Thing, name: str) -> dict[Thing, str]:
        """Write the letter to the file, with its option and seconds; return all letters."""
        option = option_text(self.benchmark.queries[thing[0]], name)
        if option is None:
            raise VragError(f"this question has no option {name}")
        kept = _choices_in(self.path, self.participant, self.benchmark)
        rows = [row for row in kept.itertuples(index=False, name=None) if row[:2] != thing]
        rows.append((*thing, name, option, self.seconds[thing], self.participant))
        table = pd.DataFrame(rows, columns=CHOICE_COLUMNS)
        write_choices(self.path, table)
        return _chosen(table)

    def render_card(self, thing: Thing) -> str:
        """Return the question with its images and options as HTML, while the seconds run."""
        if not self.running:
            return _AT_REST
        query = self.benchmark.queries[thing[0]]
        return _card(self.benchmark, query, self.contexts[thing].doc_ids)

    def on_click(self, name: str, _: object = None) -> None:
        """Handle a click on the button `name`."""
        if self.running and self.place < len(self.things):
            thing = self.things[self.place]
            passed = time.monotonic() - self._since
            self.seconds[thing] = self.seconds.get(thing, 0.0) + passed
        if name == "begin":
            self.running = not self.running
            self.refresh()
        else:
            super().on_click(name)

    def refresh(self) -> None:
        """Update the screen, and restart the clock."""
        super().refresh()
        begin = self.buttons["begin"]
        begin.description = "pause" if self.running else "begin"
        if not self.running and self.place < len(self.things):
            for button in self.buttons.values():
                button.disabled = button is not begin
        self._since = time.monotonic()


def multiple_choice_panel(
    benchmark: Benchmark, contexts: Sequence[Context], path: Path | str, participant: str
) -> MultipleChoicePanel:
    """Return a panel in which a person answers the questions of `contexts`, in their order.
    It shows the documents of each. Every click saves letter and seconds to the CSV file `path`
    (`read_choices`).

    The correct option is never shown. An existing file is continued at the first question without
    an answer. Each participant uses a separate file: raises `VragError` when `path` holds choices
    of another `participant` or of other questions, without a name, for a question without options,
    and as `read_choices`.
    """
    if not participant:
        raise VragError("the participant is empty; expected a name, which every choice keeps.")
    for context in contexts:
        if not benchmark.queries[context.query_id].choices:
            raise VragError(f"query {context.query_id!r} has no options to choose from.")
    return MultipleChoicePanel(benchmark, contexts, Path(path), participant)


def choices_page(benchmark: Benchmark, answers: pd.DataFrame, *, most: int = 6) -> HTML:
    """Return the first `most` questions of `answers` (`load_human_answers`) as static HTML.
    Each has its documents, its options, the correct one marked, and who chose which in how many
    seconds; all text is escaped.
    """
    cards = []
    for (query_id, setting), part in list(answers.groupby(["query_id", "setting"], sort=False)):
        query = benchmark.queries[str(query_id)]
        said = []
        for person, letter, seconds in part[["model", "answer", "seconds"]].itertuples(index=False):
            took = "" if pd.isna(seconds) else f" in {seconds:.0f} s"
            said.append(f"{person}: {letter}{took}")
        card = _card(benchmark, query, part["doc_ids"].iloc[0], right=query.answers)
        cards.append(f"<p>{escape(str(setting))}</p>{card}<p>{escape('; '.join(said))}</p>")
        if len(cards) == most:
            break
    return page_html(cards, "nobody has answered yet")


def _card(
    benchmark: Benchmark, query: Query, doc_ids: Sequence[DocId], right: Sequence[str] = ()
) -> str:
    """Pictures, question and options; those in `right` are marked."""
    asked = image_html(query.image, caption="asked about", frame=ASKED) if query.image else ""
    examples = []
    for number, doc_id in enumerate(doc_ids, start=1):
        document = benchmark.corpus[doc_id]
        if document.image is not None:
            examples.append(image_html(document.image, caption=f"example {number}"))
        elif document.text:
            examples.append(f"<p>{escape(document.text)}</p>")
    options: list[str] = []
    for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
        mark = " <b>(right)</b>" if choice in right else ""
        options.append(f"({letter}) {escape(choice)}{mark}")
    return (
        f"<div style='line-height:1.5'><p><b>{escape(query.text)}</b></p>"
        f"<p style='font-size:120%'>{'<br>'.join(options)}</p>"
        f"<div>{asked}{''.join(examples)}</div></div>"
    )


def _choices_in(path: Path, participant: str, benchmark: Benchmark) -> pd.DataFrame:
    """The choices in a file that may not exist; raises `VragError` for another's, and
    for those of other questions.
    """
    if not path.exists():
        return pd.DataFrame(columns=CHOICE_COLUMNS)
    choices = read_choices(path)
    if others := sorted(set(choices["participant"]) - {participant}):
        raise VragError(
            f"{path}: found choices of {others[0]!r}, expected only those of {participant!r}."
            " Choose another file: one for each participant."
        )
    for row in choices.itertuples(index=False):
        query = benchmark.queries.get(str(row.query_id))
        if query is not None and option_text(query, str(row.option)) != row.option_text:
            raise VragError(
                f"{path}: found ({row.option}) {row.option_text!r} chosen in {row.query_id!r},"
                f" which is no such option of {benchmark.name}: these are choices of other"
                " questions. Choose another file."
            )
    return choices


def _things(choices: pd.DataFrame) -> list[Thing]:
    return list(zip(choices["query_id"], choices["setting"], strict=True))


def _chosen(choices: pd.DataFrame) -> dict[Thing, str]:
    return dict(zip(_things(choices), choices["option"], strict=True))
