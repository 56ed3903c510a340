"""Messages, progress bars, and records of a notebook's model calls and notes for its runner.

Messages are plain lines on standard output, in notebooks as in terminals. A warning says that
something was changed or left out; checks and reports show it too.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from vrag_kit.types import Failure

PLACE = "VRAG_TALLY"
"""Environment variable in which the runner passes the path of the file for records."""
PAUSE = 10.0
"""Seconds before the first line of a progress bar, and between lines."""
_CALLS = {"model": "asked", "judge": "given"}
"""Kind of a record → its field with the number of calls."""
Item = TypeVar("Item")


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


logger = logging.getLogger("vrag_kit")
logger.propagate = False
logger.setLevel(logging.DEBUG)
logger.addHandler(_PlainHandler(logging.INFO))
if os.environ.get(PLACE):
    logger.addHandler(_RecordHandler(Path(os.environ[PLACE])))


@contextmanager
def collect_notes() -> Iterator[list[str]]:
    """Yield a list to which each note of the block is added once."""
    handler = _NoteHandler()
    logger.addHandler(handler)
    try:
        yield handler.notes
    finally:
        logger.removeHandler(handler)


def record_calls(
    kind: str, name: str, calls: int, failures: Sequence[Failure], again: str = ""
) -> None:
    """Record a batch of calls to a "model" or "judge", with its failures and how to repeat these
    (`again`).
    """
    example = str(failures[0]) if failures else ""
    fields = {kind: name, _CALLS[kind]: calls, "failed": len(failures), "example": example}
    logger.debug("record", extra={"fields": {**fields, "again": again if failures else ""}})


def _cell() -> int:
    """The number in brackets of the cell that is being executed; 0 outside of a kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return 0 if shell is None else len(shell.user_ns["In"]) - 1


def failed_calls(place: Path, kind: str) -> dict[str, str]:
    """Return the models whose every answer in the records at `place` failed, or the judges of whose
    verdicts some failed (`kind` is "model" or "judge"). Each maps to the counts, the first reason,
    and how to repeat the calls.
    """
    by_name: dict[str, list[dict[str, Any]]] = {}  # Any: as JSON holds
    lines = place.read_text(encoding="utf-8").splitlines() if place.is_file() else []
    for record in map(json.loads, lines):
        if kind in record:
            by_name.setdefault(record[kind], []).append(record)
    found = {}
    for name, records in by_name.items():
        calls = sum(record[_CALLS[kind]] for record in records)
        failed = sum(record["failed"] for record in records)
        first = next((record for record in records if record["failed"]), {})
        if kind == "model" and 0 < failed == calls:
            found[name] = f"{failed:,} times, as by {first['example']}"
        elif kind == "judge" and failed:
            words = f"as by {first['example']}. {first['again']}"
            found[name] = f"{failed:,} of {calls:,} times, {words}"
    return found


def progress(
    label: str, total: int, unit: str, *, start: int = 0, items: Iterable[Item] | None = None
) -> tqdm[Item]:
    """Create a progress bar of `total` units, `start` of them already done; close it at the end. It
    yields the `items`, each one unit.

    It prints to standard output at intervals: a log gets few lines, and none for work that ends
    quickly.
    """
    every = {"mininterval": PAUSE, "delay": PAUSE}
    return tqdm(items, label, total, unit=f" {unit}", initial=start, file=sys.stdout, **every)


def track(items: Iterable[Item], label: str, total: int, unit: str) -> Iterator[Item]:
    """Yield `items`, of which there are `total`, with a progress bar."""
    yield from progress(label, total, unit, items=items)


def format_duration(seconds: float) -> str:
    """Format seconds as seconds, from ten minutes as minutes, from an hour as hours and minutes."""
    if seconds < 600:
        return f"{seconds:,.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"
