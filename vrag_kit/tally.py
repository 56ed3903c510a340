"""What rounds of questions came to, told to the runner of a notebook where there is one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.forecast import current_forecast
from vrag_kit.outcomes import Failure

PLACE = "VRAG_TALLY"
"""The variable by which the runner names the file to tell it in."""


def tell(model: str, asked: int, failures: Sequence[Failure]) -> None:
    """Note a round in which a model was asked `asked` questions."""
    place = os.environ.get(PLACE)
    if not place or current_forecast() is not None:
        return
    example = str(failures[0]) if failures else ""
    line = {"model": model, "asked": asked, "failed": len(failures), "example": example}
    with Path(place).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")


def all_failed(place: Path) -> dict[str, str]:
    """Model → how often it was asked and why that failed, of the models whose every answer
    in the rounds told in `place` is a failure.
    """
    asked: dict[str, int] = {}
    failed: dict[str, int] = {}
    examples: dict[str, str] = {}
    lines = place.read_text(encoding="utf-8").splitlines() if place.is_file() else []
    for told in map(json.loads, lines):
        model = told["model"]
        asked[model] = asked.get(model, 0) + told["asked"]
        failed[model] = failed.get(model, 0) + told["failed"]
        examples.setdefault(model, told["example"])
    lost = [model for model in asked if asked[model] and asked[model] == failed[model]]
    return {model: f"{asked[model]:,} times, as by {examples[model]}" for model in lost}
