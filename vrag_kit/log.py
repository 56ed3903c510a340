"""Messages of the kit, and records of a notebook's model calls, verdicts and notes for its runner.

Messages are plain lines on standard output, in notebooks as in terminals. A warning says that
something was changed or left out; checks and reports show it too.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vrag_kit.outcomes import Failure

PLACE = "VRAG_TALLY"
"""Environment variable in which the runner passes the path of the file for records."""


class _PlainHandler(logging.Handler):
    """Prints messages as they are, to the standard output of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), flush=True)


class _RecordHandler(logging.Handler):
    """Appends records to a file, one JSON object a line, each with the cell that is executed."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.DEBUG)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        fields = getattr(record, "fields", None)
        if record.levelno >= logging.WARNING:
            fields = {"note": record.getMessage()}
        if fields is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps({**fields, 'cell': _cell()})}\n")


class _NoteHandler(logging.Handler):
    """Collects notes, each once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.notes: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if (note := record.getMessage()) not in self.notes:
            self.notes.append(note)


def _set_up() -> logging.Logger:
    logger = logging.getLogger("vrag_kit")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(_PlainHandler(logging.INFO))
    if place := os.environ.get(PLACE):
        logger.addHandler(_RecordHandler(Path(place)))
    return logger


logger = _set_up()


@contextmanager
def collect_notes() -> Iterator[list[str]]:
    """Yield a list to which each note of the block is added once."""
    handler = _NoteHandler()
    logger.addHandler(handler)
    try:
        yield handler.notes
    finally:
        logger.removeHandler(handler)


def record_answers(model: str, asked: int, failures: Sequence[Failure]) -> None:
    """Record a batch of `asked` calls to a model, with its failures."""
    example = str(failures[0]) if failures else ""
    _record({"model": model, "asked": asked, "failed": len(failures), "example": example})


def record_verdicts(judge: str, given: int, failures: Sequence[Failure], again: str) -> None:
    """Record how many verdicts a judge gave, including the failures, and how to repeat these
    (`again`).
    """
    example = str(failures[0]) if failures else ""
    counts = {"given": given, "failed": len(failures)}
    _record({"judge": judge, **counts, "example": example, "again": again if failures else ""})


def _record(fields: dict[str, Any]) -> None:  # Any: what JSON holds
    logger.debug("record", extra={"fields": fields})


def _cell() -> int:
    """The number in brackets of the cell that is being executed; 0 outside of a kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return 0 if shell is None else len(shell.user_ns["In"]) - 1


def last_recorded_cell(place: Path) -> int:
    """Return the number of the last cell that recorded calls or notes in `place`; 0 if none did."""
    return max((int(told["cell"]) for told in _entries(place) if "judge" not in told), default=0)


def models_without_answers(place: Path) -> dict[str, str]:
    """Return the models whose every answer in the records at `place` failed. Each maps to its
    number of calls and an example of the reason.
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
    """Return the judges in the records at `place` of whose verdicts some failed. Each maps to the
    counts, the first reason, and how to repeat them.
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
