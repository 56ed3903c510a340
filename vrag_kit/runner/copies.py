"""What is wrong with the executed copy of a notebook; the run and the report ask the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrag_kit.runner.books import Book, read_book

ADDED = {"parameters", "injected-parameters", "papermill-error-cell-tag"}
"""Tags of cells that are no part of a notebook's text."""
_NEVER = "It has not been run with this parameter file."
_BROKEN = "Its executed copy cannot be read. Run it again."
_STOPPED = (
    "It did not come to its end: it was stopped, its kernel died, or it is still running. See"
    " {}.log."
)
_OLDER = "This run is older than the notebook, which has changed since. Run it again."
_OTHER = "This run was made with other parameters than the parameter file now gives. Run it again."


def read_copy(copy: Path) -> Book | None:
    """An executed copy; None for one that is not there, damaged, or half written."""
    try:
        return read_book(copy)
    except (OSError, ValueError):
        return None


def ended_well(copy: Path) -> bool:
    """Whether the runner has left its note of a run that ended well."""
    return copy.with_suffix(".json").is_file()


def what_is_wrong(copy: Path, notebook: Path, given: Mapping[str, Any]) -> dict[str, str]:
    """State → note, for all that is wrong with the run of a notebook that left `copy`, the
    worst first; empty when it ended well with the parameters `given`.
    """
    if not copy.is_file():
        return {"not run": _NEVER}
    book = read_copy(copy)
    if book is None:
        return {"not readable": _BROKEN}
    wrong = {}
    if failure := _failure(book):
        wrong["failed"] = f"Failed: {failure}"
    elif not ended_well(copy):
        wrong["not finished"] = _STOPPED.format(copy.stem)
    if _sources(book) != _sources(read_book(notebook)):
        wrong["older than the notebook"] = _OLDER
    if book.metadata.get("papermill", {}).get("parameters", given) != given:
        wrong["other parameters"] = _OTHER
    return wrong


def _failure(book: Book) -> str:
    for cell in book.cells:
        for output in cell.outputs:
            if output["output_type"] == "error":
                return f"{output['ename']}: {output['evalue']}"
    return ""


def _sources(book: Book) -> list[tuple[str, str]]:
    """The cells as they were written, without what papermill adds."""
    added = ADDED - {"parameters"}
    return [(cell.cell_type, cell.source) for cell in book.cells if not cell.tags & added]
