"""Log of a notebook's model calls, verdicts and notes, by cell, for the runner of the notebook."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vrag_kit.forecast import current_dry_run
from vrag_kit.outcomes import Failure
from vrag_kit.plain import JsonView

PLACE = "VRAG_TALLY"
"""Environment variable in which the runner passes the path of the log."""


def log_answers(model: str, asked: int, failures: Sequence[Failure]) -> None:
    """Log a batch of `asked` calls to a model, with its failures."""
    example = str(failures[0]) if failures else ""
    _write({"model": model, "asked": asked, "failed": len(failures), "example": example})


def log_verdicts(judge: str, given: int, failures: Sequence[Failure], again: str) -> None:
    """Log how many verdicts a judge gave, including the failures, and how to repeat these
    (`again`).
    """
    example = str(failures[0]) if failures else ""
    counts = {"given": given, "failed": len(failures)}
    _write({"judge": judge, **counts, "example": example, "again": again if failures else ""})


def log_note(line: str) -> None:
    """Print and log a line; a dry run only records it, once."""
    forecast = current_dry_run()
    if forecast is not None:
        forecast.add_note(line)
        return
    print(line, flush=True)
    _write({"note": line})


def _write(line: JsonView) -> None:
    place = os.environ.get(PLACE)
    if place and current_dry_run() is None:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({**line, 'cell': _cell()})}\n")


def _cell() -> int:
    """The number in brackets of the cell that is being executed; 0 outside of a kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return 0 if shell is None else len(shell.user_ns["In"]) - 1


def last_logged_cell(place: Path) -> int:
    """Return the number of the last cell that logged calls or notes in `place`; 0 if none did."""
    return max((int(told["cell"]) for told in _entries(place) if "judge" not in told), default=0)


def models_without_answers(place: Path) -> dict[str, str]:
    """Return the models whose every answer in the log `place` failed. Each maps to its number of
    calls and an example of the reason.
    """
    asked: dict[str, int] = {}
    failed: dict[str, int] = {}
    examples: dict[str, str] = {}
    for told in _entries(place):
        if "model" not in told:
            continue
        model = told["model"]
        asked[model] = asked.get(model, 0) + told["asked"]
        failed[model] = failed.get(model, 0) + told["failed"]
        examples.setdefault(model, told["example"])
    lost = [model for model in asked if asked[model] and asked[model] == failed[model]]
    return {model: f"{asked[model]:,} times, as by {examples[model]}" for model in lost}


def failed_verdicts(place: Path) -> dict[str, str]:
    """Return the judges in the log `place` of whose verdicts some failed. Each maps to the counts,
    the first reason, and how to repeat them.
    """
    totals: dict[str, list[int]] = {}
    words: dict[str, str] = {}
    for told in _entries(place):
        if "judge" not in told:
            continue
        counts = totals.setdefault(told["judge"], [0, 0])
        counts[0] += told["failed"]
        counts[1] += told["given"]
        if told["failed"]:
            words.setdefault(told["judge"], f"as by {told['example']}. {told['again']}")
    return {
        judge: f"{totals[judge][0]:,} of {totals[judge][1]:,} times, {said}"
        for judge, said in words.items()
    }


def _entries(place: Path) -> Iterator[dict[str, Any]]:  # Any: what JSON holds
    lines = place.read_text(encoding="utf-8").splitlines() if place.is_file() else []
    yield from map(json.loads, lines)
