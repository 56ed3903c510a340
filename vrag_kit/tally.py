"""What rounds of questions came to, and which cells asked or noted something, told to the
runner of a notebook where there is one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vrag_kit.forecast import current_forecast
from vrag_kit.outcomes import Failure
from vrag_kit.plain import JsonView

PLACE = "VRAG_TALLY"
"""The variable by which the runner names the file to tell it in."""


def tell(model: str, asked: int, failures: Sequence[Failure]) -> None:
    """Note a round in which a model was asked `asked` questions."""
    example = str(failures[0]) if failures else ""
    _write({"model": model, "asked": asked, "failed": len(failures), "example": example})


def tell_verdicts(judge: str, given: int, failures: Sequence[Failure], again: str) -> None:
    """Note how many verdicts a judge gave, those that failed among them, and what to do to
    have these, `again`.
    """
    example = str(failures[0]) if failures else ""
    counts = {"given": given, "failed": len(failures)}
    _write({"judge": judge, **counts, "example": example, "again": again if failures else ""})


def note(line: str) -> None:
    """Print a line, or note it once where there is only a forecast, which looks for it."""
    forecast = current_forecast()
    if forecast is not None:
        forecast.note(line)
        return
    print(line, flush=True)
    _write({"note": line})


def _write(line: JsonView) -> None:
    place = os.environ.get(PLACE)
    if place and current_forecast() is None:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({**line, 'cell': _cell()})}\n")


def _cell() -> int:
    """The number in brackets of the cell that is being executed; 0 outside of a kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return 0 if shell is None else len(shell.user_ns["In"]) - 1


def last_cell(place: Path) -> int:
    """The number of the last cell that told anything in `place`, by asking or noting; 0
    where none did.
    """
    return max((int(told["cell"]) for told in _told(place) if "judge" not in told), default=0)


def all_failed(place: Path) -> dict[str, str]:
    """Model → how often it was asked and why that failed, of the models whose every answer
    in the rounds told in `place` is a failure.
    """
    asked: dict[str, int] = {}
    failed: dict[str, int] = {}
    examples: dict[str, str] = {}
    for told in _told(place):
        if "model" not in told:
            continue
        model = told["model"]
        asked[model] = asked.get(model, 0) + told["asked"]
        failed[model] = failed.get(model, 0) + told["failed"]
        examples.setdefault(model, told["example"])
    lost = [model for model in asked if asked[model] and asked[model] == failed[model]]
    return {model: f"{asked[model]:,} times, as by {examples[model]}" for model in lost}


def lost_verdicts(place: Path) -> dict[str, str]:
    """Judge → how many of its verdicts told in `place` failed, why the first did, and what
    to do to have them; of the judges of which some failed.
    """
    totals: dict[str, list[int]] = {}
    words: dict[str, str] = {}
    for told in _told(place):
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


def _told(place: Path) -> Iterator[dict[str, Any]]:  # Any: what JSON holds
    lines = place.read_text(encoding="utf-8").splitlines() if place.is_file() else []
    yield from map(json.loads, lines)
