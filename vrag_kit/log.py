"""Messages, progress bars, and records of a notebook's model calls for its runner.

Messages are plain lines on standard output, in notebooks as in terminals. A warning says that
something was changed or left out; checks and reports show it too.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from vrag_kit.types import Failure

PLACE = "VRAG_TALLY"
"""Environment variable in which the runner passes the path of the file for records."""
PAUSE = 10.0
"""Seconds before the first line of a progress bar, and between lines."""
Item = TypeVar("Item")


class _PlainHandler(logging.Handler):
    """Prints messages as they are, to the standard output of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), flush=True)


logger = logging.getLogger("vrag_kit")
logger.propagate = False
logger.setLevel(logging.DEBUG)
logger.addHandler(_PlainHandler(logging.INFO))


def record_calls(
    kind: str, name: str, calls: int, failures: Sequence[Failure], again: str = ""
) -> None:
    """Record a batch of calls to a "model" or "judge", with its failures and how to repeat these
    (`again`).
    """
    if place := os.environ.get(PLACE):
        record = {"kind": kind, "name": name, "calls": calls, "failed": len(failures)}
        record |= {"example": "; ".join(map(str, failures[:1])), "again": again}
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(record)}\n")


def progress(
    items: Iterable[Item] | None, label: str, total: int, unit: str, *, start: int = 0
) -> tqdm[Item]:
    """Create a progress bar of `total` units, `start` of them already done. It yields the `items`,
    each one unit; without items, update it, and close it at the end.

    It prints to standard output at intervals: a log gets few lines, and none for work that ends
    quickly.
    """
    every = {"mininterval": PAUSE, "delay": PAUSE}
    return tqdm(items, label, total, unit=f" {unit}", initial=start, file=sys.stdout, **every)
