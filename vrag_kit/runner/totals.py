"""The last line of a forecast: the total cost of all models, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vrag_kit.log import format_duration
from vrag_kit.runner.dry_run import DryRunReport
from vrag_kit.workspace import project_root

LEFT_OUT = "cannot be counted yet"
"""Part of the total line if notebooks fail before any model call."""


def total_line(dry_run: DryRunReport) -> str:
    """Return the total line; "" if nothing costs money and no notebook is left out."""
    forecasts = [asked.forecast for asked in dry_run.models]
    cost = sum(each.cost or 0.0 for each in forecasts)
    hours = sum(each.hours for each in forecasts)
    if not cost and not dry_run.failed:
        return ""
    short = [
        f"{asked.forecast.uncounted} of {asked.name}"
        for asked in dry_run.models
        if asked.forecast.uncounted
    ]
    without = _without(dry_run)
    word = "at least" if short else "about"
    so_far = "so far " if without else ""
    line = f"all models together: {so_far}{word} {cost:,.2f} US dollars"
    line += f" and, one after another, {format_duration(3600 * hours)}" if hours else ""
    line += f"; not counted: {', '.join(short)}" if short else ""
    return f"{line}{without}"


def _without(dry_run: DryRunReport) -> str:
    """Which notebooks are not in the sum, and what reckons without their data."""
    words = ""
    if failed := dry_run.failed:
        words += f", without {_counted(failed)} that {LEFT_OUT}: {_numbers(failed)}"
        folders = dict.fromkeys(Path(name).parent.as_posix() for name in failed)
        commands = [_reckons(folder) for folder in folders if _is_paper(folder)]
        words += f" (the paper's main experiment: {', '.join(commands)})" if commands else ""
    if undrawn := dry_run.undrawn:
        words += f", without {_counted(undrawn)} whose data the run draws: {_numbers(undrawn)}"
    return words


def _counted(names: dict[str, str]) -> str:
    return "1 notebook" if len(names) == 1 else f"{len(names)} notebooks"


def _numbers(names: Iterable[str]) -> str:
    """Notebooks by their numbers."""
    return ", ".join(Path(name).name.partition("_")[0] for name in names)


def _is_paper(folder: str) -> bool:
    """Whether this checkout can reckon a paper's main experiment without its data."""
    root = project_root()
    script = root / "tests/timing/costs.py"
    return script.is_file() and (root / "params" / folder / "paper.yaml").is_file()


def _reckons(folder: str) -> str:
    return f"`python -m tests.timing.costs {folder}`"
