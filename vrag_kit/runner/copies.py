"""Checks of the executed copy of a notebook, shared by the run and the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrag_kit.runner.books import Notebook, read_notebook

ADDED = {"parameters", "injected-parameters", "papermill-error-cell-tag"}
"""Tags of cells that are not part of a notebook's text."""
_NEVER = "It has not been run with this parameter file."
_BROKEN = "Its executed copy cannot be read. Run it again."
_STOPPED = (
    "It did not come to its end: it was stopped, its kernel died, or it is still running. See"
    " {}.log."
)
_OLDER = "This run is older than the notebook, which has changed since. Run it again."
_OTHER = "This run was made with other parameters than the parameter file now gives. Run it again."


def read_executed(copy: Path) -> Notebook | None:
    """Read an executed copy; None if it is missing, damaged, or incomplete."""
    try:
        return read_notebook(copy)
    except (OSError, ValueError):
        return None


def succeeded(copy: Path) -> bool:
    """Return whether the runner left the note of a successful run."""
    return copy.with_suffix(".json").is_file()


def problems(copy: Path, notebook: Path, given: Mapping[str, Any]) -> dict[str, str]:
    """Return {state: note} for every problem of the run that left `copy`, the worst first. It is
    empty if the run succeeded with the parameters `given`.
    """
    if not copy.is_file():
        return {"not run": _NEVER}
    book = read_executed(copy)
    if book is None:
        return {"not readable": _BROKEN}
    wrong = {}
    if failure := _failure(book):
        wrong["failed"] = f"Failed: {failure}"
    elif not succeeded(copy):
        wrong["not finished"] = _STOPPED.format(copy.stem)
    if _sources(book) != _sources(read_notebook(notebook)):
        wrong["older than the notebook"] = _OLDER
    if book.metadata.get("papermill", {}).get("parameters", given) != given:
        wrong["other parameters"] = _OTHER
    return wrong


def _failure(book: Notebook) -> str:
    for cell in book.cells:
        for output in cell.outputs:
            if output["output_type"] == "error":
                return f"{output['ename']}: {output['evalue']}"
    return ""


def _sources(book: Notebook) -> list[tuple[str, str]]:
    """The cells as they were written, without what papermill adds."""
    added = ADDED - {"parameters"}
    return [(cell.cell_type, cell.source) for cell in book.cells if not cell.tags & added]
