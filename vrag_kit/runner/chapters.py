"""What a report tells of one notebook: how its run ended, its parameters, and its text,
tables and figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from vrag_kit.runner.books import Book, parameters_of, read_book
from vrag_kit.runner.copies import ADDED, ended_well, read_copy, what_is_wrong
from vrag_kit.runner.execution import tally_of
from vrag_kit.runner.plan import name_of
from vrag_kit.runner.shown import opening, shown
from vrag_kit.tally import all_failed, lost_verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One parameter of a run."""

    name: str
    value: str
    given: bool  # by the parameter file; otherwise it is the notebook's own
    meaning: str  # the comment beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One notebook on the page."""

    name: str  # "visual_rag/03_baselines"
    anchor: str  # its name on the page
    title: str
    state: str  # "done", or in a few words what is wrong
    notes: tuple[str, ...] = ()  # the same in sentences, all that a reader must know of this run
    finished: str = ""  # "2026-11-21 10:35 UTC"
    seconds: float = 0.0
    python: str = ""
    settings: tuple[Setting, ...] = ()
    body: Markup | str = ""  # text, tables and figures in order
    code: str = ""


def chapter_of(notebook: Path, given: Mapping[str, Any], folder: Path, anchor: str) -> Chapter:
    """What the page tells of one notebook, from its executed copy in `folder`."""
    name, source = name_of(notebook), read_book(notebook)
    copy = folder / f"{name}.ipynb"
    title = opening(source).title or name
    wrong = what_is_wrong(copy, notebook, given) | _unanswered(copy)
    state, notes = next(iter(wrong), "done"), tuple(wrong.values())
    book = read_copy(copy)
    if book is None:
        return Chapter(name=name, anchor=anchor, title=title, state=state, notes=notes)
    run = book.metadata.get("papermill", {})
    return Chapter(
        name=name,
        anchor=anchor,
        title=opening(book).title or name,
        state=state,
        notes=notes,
        finished=_minute(run.get("end_time")),
        seconds=run.get("duration") or 0.0,
        python=book.metadata.get("language_info", {}).get("version", ""),
        settings=_settings(book, run.get("parameters", {})),
        body=shown(book, copy.stem, stops=not ended_well(copy)),
        code="\n\n\n".join(_code(book)),
    )


def _unanswered(copy: Path) -> dict[str, str]:
    """State → note of the models of which a run has no answer, and of failed verdicts."""
    lost, unjudged = all_failed(tally_of(copy)).items(), lost_verdicts(tally_of(copy)).items()
    silent = [f"Every answer of {model!r} failed, {how}." for model, how in lost]
    without = [f"Verdicts of {judge!r} failed, {how}." for judge, how in unjudged]
    states = {"a model without answers": silent, "answers without verdicts": without}
    return {state: " ".join(said) for state, said in states.items() if said}


def _code(book: Book) -> list[str]:
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return [cell.source for cell in cells if not cell.tags & ADDED]


def _minute(time: str | None) -> str:
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M} UTC" if time else ""


def _settings(book: Book, given: Mapping[str, Any]) -> tuple[Setting, ...]:
    """The parameters in the order of the notebook, with the values of this run."""
    settings = []
    for each in parameters_of(book):
        value = repr(given.get(each.name, each.default))
        there = each.name in given
        settings.append(Setting(name=each.name, value=value, given=there, meaning=each.meaning))
    return tuple(settings)
