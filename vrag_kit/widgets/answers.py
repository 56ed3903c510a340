"""Browse a table of answers: question, images, prompt as sent, answer and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import pandas as pd
from markupsafe import Markup

from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, Query
from vrag_kit.widgets.browser import Browser
from vrag_kit.widgets.cards import page_html
from vrag_kit.widgets.images import document_thumbnail, image_html
from vrag_kit.widgets.sent_prompts import SentPrompts, prompt_html

if TYPE_CHECKING:
    from IPython.display import HTML

FILTERS = ("model", "setting", "k", "draw", "outcome", "status", "score")
"""Columns that may become filters; those with a single value do not."""
_SHOWN = ("outcome", "score", "verdict", "model", "setting", "k", "draw")
"""Columns that a card shows below the answer, if the table has them."""


class AnswerBrowser(Browser[int]):
    """Panel that browses the rows of a table of answers, selected by filters."""

    thing = "answer"

    def __init__(
        self, benchmark: Benchmark, answers: pd.DataFrame, answers_dir: Path | str | None
    ) -> None:
        """Takes the arguments of `browse_answers`."""
        self._cards = _Cards(benchmark, answers, answers_dir)
        self._values = answers[[name for name in FILTERS if name in answers]].astype(str)
        choices = {str(name): list(dict.fromkeys(self._values[name])) for name in self._values}
        super().__init__({name: values for name, values in choices.items() if len(values) > 1})

    def __repr__(self) -> str:
        return f"answer browser: {len(self._values)} answers"

    def matching(self, wanted: Mapping[str, str]) -> Sequence[int]:
        """Return the row numbers of matching answers."""
        fits = pd.Series(True, index=self._values.index)
        for name, value in wanted.items():
            fits &= self._values[name] == value
        return [int(row) for row in fits.to_numpy().nonzero()[0]]

    def render_card(self, thing: int) -> str:
        """Return the answer in row `thing` as HTML."""
        return self._cards.render(thing)


def browse_answers(
    benchmark: Benchmark, answers: pd.DataFrame, answers_dir: Path | str | None = None
) -> AnswerBrowser:
    """Return a panel to browse `answers`: a table of `ask_models`, judged or not, or a part of it.

    With `answers_dir`, a card shows the prompt as it was sent, with its images; without it, the
    images of doc_ids. Relevant images are framed. Filters are the columns of `FILTERS` that differ.
    Raises `VragError` for a table without the columns query_id, answer and doc_ids.
    """
    return AnswerBrowser(benchmark, answers, answers_dir)


def answers_page(
    benchmark: Benchmark, answers: pd.DataFrame, answers_dir: Path | str | None = None
) -> HTML:
    """Return all rows as static HTML, one below another, otherwise as `browse_answers`; all text is
    escaped.
    """
    cards = _Cards(benchmark, answers, answers_dir)
    return page_html(list(map(cards.render, range(len(answers)))), "no such answer")


class _Cards:
    """HTML cards of the rows of a table."""

    def __init__(
        self, benchmark: Benchmark, answers: pd.DataFrame, answers_dir: Path | str | None
    ) -> None:
        require_columns(answers, ["query_id", "answer", "doc_ids"], "browse_answers")
        self._benchmark = benchmark
        self._answers = answers
        self._store = None if answers_dir is None else Path(answers_dir) / "answers.sqlite"
        self._prompts = SentPrompts()

    def render(self, number: int) -> str:
        """Return the card of a row."""
        row = self._answers.iloc[number]
        query = self._benchmark.queries[row["query_id"]]
        answer = row["answer"] if isinstance(row["answer"], str) and row["answer"] else ""
        rows = {
            "accepted answers": " | ".join(query.answers),
            "answer": answer or f"({row.get('status', 'none')})",
        }
        rows |= {name: str(row[name]) for name in _SHOWN if name in row and pd.notna(row[name])}
        if query.choices:
            rows["options"] = " | ".join(query.choices)
        return _template().render(
            question=query.text,
            query_image=Markup(_query_image(query)),
            rows=rows,
            evidence=Markup(self._evidence(row, query)),
        )

    def _evidence(self, row: pd.Series, query: Query) -> str:
        """Return the prompt as sent, else the images of the context."""
        relevant = self._benchmark.relevant(query.query_id)
        if self._store is not None and row.get("answer_id"):
            prompt = self._prompts.read(self._store, row["answer_id"])
            images = [self._benchmark.corpus[doc_id].image for doc_id in relevant]
            places = {image.where for image in images if image is not None}
            return prompt_html(prompt, "prompt as sent", lambda image: image.where in places)
        # imported here, for it brings the libraries that draw figures
        from vrag_kit.plotting.style import CLUE, GREY

        shown = []
        for place, doc_id in enumerate(row["doc_ids"], start=1):
            caption, frame = ("relevant", CLUE) if doc_id in relevant else (f"image {place}", GREY)
            shown.append(document_thumbnail(self._benchmark, doc_id, caption=caption, frame=frame))
        return "".join(shown)


def _query_image(query: Query) -> str:
    return "" if query.image is None else image_html(query.image, caption="asked about")


@cache
def _template() -> jinja2.Template:
    folder = jinja2.FileSystemLoader(Path(__file__).parent)
    strict = jinja2.StrictUndefined
    environment = jinja2.Environment(loader=folder, autoescape=True, undefined=strict)
    return environment.get_template("answers.html")
