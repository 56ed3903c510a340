"""Panel in which a person answers questions with options, one at a time, and its files of choices.
The seconds are measured, and every click is saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase

import pandas as pd
from markupsafe import Markup

from vrag_kit.benchmarks.sources import read_csv_rows
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.types import Benchmark, Context, DocId, Query
from vrag_kit.widgets.annotation import MOVE_HINTS, AnnotationPanel, Key, LabelFile
from vrag_kit.widgets.html import Page, card_html, image_html, page_html

CHOICE_COLUMNS = ["query_id", "setting", "option", "option_text", "seconds", "participant"]
_AT_REST = "Press <b>begin</b>: a question appears, and its seconds run until you answer or pause."
BEGIN_HINTS = {"begin": "show the question and let its seconds run, or hide it while you are away"}


def read_choices(path: Path | str) -> pd.DataFrame:
    """Read the options that one or several participants chose from a CSV file.

    The columns are query_id, setting, option (a letter), option_text, seconds (NaN if not
    measured), participant. Raises `VragError` naming the line for a missing column, a row that is
    too long or too short, an option that is no letter, invalid seconds, an empty name, and a
    question that one participant answered twice in a setting.
    """
    table = _read_text(project_path(path))
    return table.assign(seconds=_numbers(table["seconds"]))


def _read_text(path: Path) -> pd.DataFrame:
    """Read a file as `read_choices`, with the seconds as they are written."""
    advice = "Write some with `multiple_choice_panel`, or name other files."
    rows = dict(read_csv_rows(path, CHOICE_COLUMNS, "choices", advice))
    table = pd.DataFrame(list(rows.values()), list(rows), CHOICE_COLUMNS, dtype=object)
    names = ["query_id", "setting", "participant"]
    measured = table["seconds"] != ""
    valid = _numbers(table["seconds"]).between(0, math.inf, inclusive="left")
    checks = {
        "a letter A, B, C, … as option": ~table["option"].isin([*ascii_uppercase]),
        "a query_id, a setting and a participant": (table[names] == "").any(axis=1),
        "seconds from 0, or nothing": measured & ~valid,
        "one choice of a participant in a question and setting": table.duplicated(names),
    }
    for expected, wrong in checks.items():
        if wrong.any():
            row = table[wrong].iloc[0]
            found = ", ".join(map(repr, row))
            raise VragError(f"{path} line {row.name}: found {found}; expected {expected}.")
    return table.reset_index(drop=True)


def _numbers(seconds: pd.Series) -> pd.Series:
    return pd.to_numeric(seconds.replace("", "nan"), errors="coerce").astype(float)


def option_text(query: Query, letter: str) -> str | None:
    """Return the text of an option; None for a letter that the question does not have."""
    return dict(zip(ascii_uppercase, query.choices, strict=False)).get(letter)


class MultipleChoicePanel(AnnotationPanel):
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
        self.running = False
        self.seconds: dict[Key, float] = {}
        self._since = 0.0
        most = max((len(benchmark.queries[each].choices) for each, _ in self.contexts), default=0)
        labels = {letter: f"({letter}) is right" for letter in ascii_uppercase[:most]}
        read = partial(_choices_of, benchmark)
        file = LabelFile(path, CHOICE_COLUMNS[:2], CHOICE_COLUMNS, participant, read)
        super().__init__(list(self.contexts), file, labels | MOVE_HINTS | BEGIN_HINTS, self._card)
        self.seconds = {thing: float(row[4] or 0) for thing, row in self.rows.items()}

    def label(self, thing: Key, name: str) -> Key:
        """Return the letter, its option and the seconds."""
        option = option_text(self.benchmark.queries[thing[0]], name)
        if option is None:
            raise VragError(f"this question has no option {name}")
        return name, option, f"{self.seconds[thing]:.1f}"

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

    def _card(self, query_id: str, setting: str) -> Markup:
        """The question with its images and options, while the seconds run."""
        if not self.running:
            return Markup(_AT_REST)
        return _card(self.benchmark, query_id, self.contexts[query_id, setting].doc_ids)


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
    for context in contexts:
        if not benchmark.queries[context.query_id].choices:
            raise VragError(f"query {context.query_id!r} has no options to choose from.")
    return MultipleChoicePanel(benchmark, contexts, project_path(path), participant)


def choices_page(benchmark: Benchmark, answers: pd.DataFrame, *, most: int = 6) -> Page:
    """Return the first `most` questions of `answers` (`load_human_answers`) as static HTML.
    Each has its documents, its options, the correct one marked, and who chose which in how many
    seconds; all text is escaped.
    """
    cards = []
    groups = list(answers.groupby(["query_id", "setting"], sort=False))
    for (query_id, setting), part in groups[:most]:
        facts = {}
        for person, letter, seconds in part[["model", "answer", "seconds"]].itertuples(index=False):
            facts[person] = letter if pd.isna(seconds) else f"{letter} in {seconds:.0f} s"
        documents = part["doc_ids"].iloc[0]
        cards.append(_card(benchmark, str(query_id), documents, answers=facts, note=str(setting)))
    return page_html(cards, "nobody has answered yet")


def _card(
    benchmark: Benchmark,
    query_id: str,
    doc_ids: Sequence[DocId],
    answers: Mapping[str, str] | None = None,
    note: str = "",
) -> Markup:
    """Return a question with its options, and its images; with `answers` of people, the correct
    option is marked.
    """
    query = benchmark.queries[query_id]
    facts = {}
    for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
        right = answers is not None and choice in query.answers
        facts[f"({letter})"] = f"{choice} (right)" if right else choice
    evidence: list[str] = [image_html(query.image, caption="asked about", kind="query")]
    for number, doc_id in enumerate(doc_ids, start=1):
        document = benchmark.corpus[doc_id]
        image = image_html(document.image, caption=f"example {number}")
        evidence.append(image or document.text or "")
    return card_html(query.text, facts | dict(answers or {}), evidence, note=note)


def _choices_of(benchmark: Benchmark, path: Path) -> pd.DataFrame:
    """Read the choices in a file; raises `VragError` for those of other questions."""
    choices = _read_text(path)
    for row in choices.itertuples(index=False):
        query = benchmark.queries.get(str(row.query_id))
        if query is not None and option_text(query, str(row.option)) != row.option_text:
            raise VragError(
                f"{path}: found ({row.option}) {row.option_text!r} chosen in {row.query_id!r},"
                f" which is no such option of {benchmark.name}: these are choices of other"
                " questions. Choose another file."
            )
    return choices
