"""Why a notebook's run failed, in one line."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from signal import strsignal

from vrag_kit.runner.books import Cell, read_notebook

_ADDED = {"injected-parameters", "papermill-error-cell-tag"}
"""Tags of cells that papermill adds."""


def oom_kills() -> int | None:
    """Return how many processes the system has killed for lack of memory, counted from boot. The
    result is None if it is unknown (not on Linux).
    """
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


def failure_reason(output: Path, status: int, *, starved: bool) -> str:
    """Return the failing cell of an executed notebook, or else how papermill ended. A cell is given
    by its number in the notebook as written, its first line that is no comment, and its error. With
    `starved`, memory may have been short (`oom_kills`).
    """
    log = output.with_suffix(".log")
    memory = "perhaps out of memory" if starved else "and not for want of memory"
    killed = ""
    if status < 0:
        killed = f"papermill was killed by signal {-status} ({strsignal(-status)}), {memory}"
    ended = f"{killed or _last_words(log) or f'papermill ended with status {status}'}; see {log}"
    died = f"the kernel died, {memory}"
    try:
        book = read_notebook(output)
    except (OSError, ValueError):
        return ended  # nothing was written yet, or only half of it
    number = 0
    for cell in book.cells:
        if _ADDED & cell.tags:
            continue
        number += 1
        if fault := _fault(cell, died):
            return f"cell {number} `{_first_line(cell.source)}`: {killed or fault}; see {log}"
    return ended


def _first_line(source: str) -> str:
    """Return a cell's first line that is no comment; its first line if all are."""
    lines = [line for line in source.splitlines() if line.strip()]
    said = (line for line in lines if not line.lstrip().startswith("#"))
    return next(said, next(iter(lines), ""))


def _last_words(log: Path) -> str:
    """The error with which papermill itself ended, as for a copy that the disk did not
    take; "" for none.
    """
    try:
        text = log.read_text(encoding="utf-8")
    except OSError:
        return ""
    parts = text.rsplit("Traceback (most recent call last)", 1)
    found = re.search(r"Z ([\w.]*(?:Error|Exception)\b.*)", parts[-1]) if parts[1:] else None
    return found[1] if found else ""


def _fault(cell: Cell, died: str) -> str:
    """What went wrong in a cell, `died` where its kernel did; "" when nothing did."""
    for result in cell.outputs:
        if result["output_type"] == "error":
            return f"{result['ename']}: {result['evalue']}"
    started = cell.cell_type == "code" and cell.metadata.get("papermill", {}).get("start_time")
    if started and "shell.execute_reply" not in cell.metadata.get("execution", {}):
        return died
    return ""
