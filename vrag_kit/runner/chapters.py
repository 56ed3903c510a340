"""Report sections of notebooks: how the run ended, the parameters, and the text, tables and
figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from vrag_kit.log import failed_calls
from vrag_kit.runner.books import Notebook, parse_parameters_cell, read_notebook
from vrag_kit.runner.copies import ADDED, problems, read_executed, succeeded
from vrag_kit.runner.job import status_file
from vrag_kit.runner.plan import notebook_name
from vrag_kit.runner.shown import notebook_title, render_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterValue:
    """One parameter of a run."""

    name: str
    value: str
    given: bool  # by the parameter file; otherwise it is the notebook's own
    meaning: str  # the comment beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookSection:
    """The section of one notebook in a report."""

    name: str  # "visual_rag/03_baselines"
    anchor: str  # its name on the page
    title: str
    state: str  # "done", or in a few words what is wrong
    notes: tuple[str, ...] = ()  # the same in sentences, all that a reader must know of this run
    finished: str = ""  # "2026-11-21 10:35 UTC"
    seconds: float = 0.0
    python: str = ""
    settings: tuple[ParameterValue, ...] = ()
    body: Markup | str = ""  # text, tables and figures in order
    code: str = ""


def notebook_section(
    notebook: Path, given: Mapping[str, Any], folder: Path, anchor: str
) -> NotebookSection:
    """Create the report section of one notebook from its executed copy in `folder`."""
    name, source = notebook_name(notebook), read_notebook(notebook)
    copy = folder / f"{name}.ipynb"
    title = notebook_title(source).title or name
    wrong = problems(copy, notebook, given) | _unanswered(copy)
    state, notes = next(iter(wrong), "done"), tuple(wrong.values())
    book = read_executed(copy)
    if book is None:
        return NotebookSection(name=name, anchor=anchor, title=title, state=state, notes=notes)
    run = book.metadata.get("papermill", {})
    return NotebookSection(
        name=name,
        anchor=anchor,
        title=notebook_title(book).title or name,
        state=state,
        notes=notes,
        finished=_minute(run.get("end_time")),
        seconds=run.get("duration") or 0.0,
        python=book.metadata.get("language_info", {}).get("version", ""),
        settings=_settings(book, run.get("parameters", {})),
        body=render_outputs(book, copy.stem, stops=not succeeded(copy)),
        code="\n\n\n".join(_code(book)),
    )


def _unanswered(copy: Path) -> dict[str, str]:
    """State → note of the models of which a run has no answer, and of failed verdicts."""
    tally = status_file(copy)
    lost, unjudged = (failed_calls(tally, kind).items() for kind in ("model", "judge"))
    silent = [f"Every answer of {model!r} failed, {how}." for model, how in lost]
    without = [f"Verdicts of {judge!r} failed, {how}." for judge, how in unjudged]
    states = {"a model without answers": silent, "answers without verdicts": without}
    return {state: " ".join(said) for state, said in states.items() if said}


def _code(book: Notebook) -> list[str]:
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return [cell.source for cell in cells if not cell.tags & ADDED]


def _minute(time: str | None) -> str:
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M} UTC" if time else ""


def _settings(book: Notebook, given: Mapping[str, Any]) -> tuple[ParameterValue, ...]:
    """The parameters in the order of the notebook, with the values of this run."""
    settings = []
    for each in parse_parameters_cell(book):
        value = repr(given.get(each.name, each.default))
        there = each.name in given
        settings.append(
            ParameterValue(name=each.name, value=value, given=there, meaning=each.meaning)
        )
    return tuple(settings)
