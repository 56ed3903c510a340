"""Questions with options, answered by a person: one at a time, with the seconds that it
took, saved at every click.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.people import COLUMNS, option_of, read_choices, write_choices
from vrag_kit.types import Benchmark, Context, DocId, Query
from vrag_kit.widgets.cards import page_of
from vrag_kit.widgets.one_by_one import OneByOne
from vrag_kit.widgets.pictures import figure

if TYPE_CHECKING:
    from IPython.display import HTML

Thing = tuple[str, str]
"""What is answered: (query_id, setting)."""
ASKED = "#d55e00"
"""Frame of the picture that is asked about."""
_AT_REST = "Press <b>begin</b>: a question appears, and its seconds run until you answer or pause."
_HINTS = {
    "skip": "leave it without an answer for now",
    "back": "to the question before",
    "begin": "show the question and let its seconds run, or hide it while you are away",
}


class Choosing(OneByOne[Thing]):
    """The panel of questions, with a button for each letter, skip, back, and begin,
    which says pause while the seconds run.

    `seconds` is how long each thing was on the screen, over all its visits.
    """

    done_is = "answered"

    def __init__(
        self, benchmark: Benchmark, contexts: Sequence[Context], path: Path, person: str
    ) -> None:
        """Opens, at rest, at the first of `contexts` without an answer in `path`."""
        self.benchmark = benchmark
        self.contexts = {(each.query_id, each.setting): each for each in contexts}
        self.person = person
        self.running = False
        self._since = 0.0
        kept = _choices_in(path, person, benchmark)
        self.seconds = dict(zip(_things(kept), kept["seconds"].fillna(0.0), strict=True))
        most = max((len(benchmark.queries[each].choices) for each, _ in self.contexts), default=0)
        hints = {letter: f"({letter}) is right" for letter in ascii_uppercase[:most]}
        super().__init__(list(self.contexts), _said(kept), path, {**hints, **_HINTS})

    def keep(self, thing: Thing, name: str) -> dict[Thing, str]:
        """Put the letter into the file, with its option and seconds."""
        option = option_of(self.benchmark.queries[thing[0]], name)
        if option is None:
            raise VragError(f"this question has no option {name}")
        kept = _choices_in(self.path, self.person, self.benchmark)
        rows = [row for row in kept[COLUMNS].itertuples(index=False, name=None) if row[:2] != thing]
        rows.append((*thing, name, option, self.seconds[thing], self.person))
        table = pd.DataFrame(rows, columns=COLUMNS)
        write_choices(self.path, table)
        return _said(table)

    def card_of(self, thing: Thing) -> str:
        """The question with its pictures and options, while the seconds run."""
        if not self.running:
            return _AT_REST
        query = self.benchmark.queries[thing[0]]
        return _card(self.benchmark, query, self.contexts[thing].doc_ids)

    def clicked(self, name: str, _: object = None) -> None:
        """What a click on a button does."""
        if self.running and self.place < len(self.things):
            thing = self.things[self.place]
            passed = time.monotonic() - self._since
            self.seconds[thing] = self.seconds.get(thing, 0.0) + passed
        if name == "begin":
            self.running = not self.running
            self.show()
        else:
            super().clicked(name)

    def show(self) -> None:
        """Bring the screen up to date, and take the time from now on."""
        super().show()
        begin = self.buttons["begin"]
        begin.description = "pause" if self.running else "begin"
        if not self.running and self.place < len(self.things):
            for button in self.buttons.values():
                button.disabled = button is not begin
        self._since = time.monotonic()


def choose_options(
    benchmark: Benchmark, contexts: Sequence[Context], path: Path | str, person: str
) -> Choosing:
    """A panel that asks a person the questions of `contexts`, in their order, with the
    documents of each; letter and seconds go to the CSV file `path` at every click
    (`read_choices`).

    Which option is right is never shown. A file that exists is gone on with, at the
    first question without an answer. Several people use a file each: raises `VragError`
    when `path` holds choices of another `person` or of other questions, without a name,
    for a question without options, and as `read_choices`.
    """
    if not person:
        raise VragError("the person is empty; expected a name, which is kept with every choice.")
    for context in contexts:
        if not benchmark.queries[context.query_id].choices:
            raise VragError(f"query {context.query_id!r} has no options to choose from.")
    return Choosing(benchmark, contexts, Path(path), person)


def choices_page(benchmark: Benchmark, answers: pd.DataFrame, *, most: int = 6) -> HTML:
    """The first questions of `answers` (from `people_answers`), at most so many, each
    with what it was asked with, its options, the right one marked, and who chose which
    in how many seconds; to read without a kernel, all text is escaped.
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
    return page_of(cards, "nobody has answered yet")


def _card(
    benchmark: Benchmark, query: Query, doc_ids: Sequence[DocId], right: Sequence[str] = ()
) -> str:
    """Pictures, question and options; those in `right` are marked."""
    asked = figure(query.image, caption="asked about", frame=ASKED) if query.image else ""
    examples = []
    for number, doc_id in enumerate(doc_ids, start=1):
        document = benchmark.corpus[doc_id]
        if document.image is not None:
            examples.append(figure(document.image, caption=f"example {number}"))
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


def _choices_in(path: Path, person: str, benchmark: Benchmark) -> pd.DataFrame:
    """The choices in a file that may not exist; raises `VragError` for another's, and
    for those of other questions.
    """
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    choices = read_choices(path)
    if others := sorted(set(choices["person"]) - {person}):
        raise VragError(
            f"{path}: found choices of {others[0]!r}, expected only those of {person!r}. Choose"
            " another file: one for each person."
        )
    for row in choices.itertuples(index=False):
        query = benchmark.queries.get(str(row.query_id))
        if query is not None and option_of(query, str(row.letter)) != row.option:
            raise VragError(
                f"{path}: found ({row.letter}) {row.option!r} chosen in {row.query_id!r}, which is"
                f" no such option of {benchmark.name}: these are choices of other questions."
                " Choose another file."
            )
    return choices


def _things(choices: pd.DataFrame) -> list[Thing]:
    return list(zip(choices["query_id"], choices["setting"], strict=True))


def _said(choices: pd.DataFrame) -> dict[Thing, str]:
    return dict(zip(_things(choices), choices["letter"], strict=True))
