"""The steps of a training: which part of it each is in, what is learned in it, and the log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from torch.utils.data import DataLoader, Dataset

from vrag_kit.files import write_file
from vrag_kit.plain import Json

WEIGHTS = Path(__file__).parents[1] / "weights"
"""Where the models that are shipped lie."""
TRAINING = Path(__file__).parents[3] / "runs" / "training"
"""Where trainings keep what they go on from."""
T = TypeVar("T")


class _Part(Protocol):
    """A part of a training."""

    @property
    def steps(self) -> int: ...


P = TypeVar("P", bound=_Part)


def phase_of(phases: Sequence[P], step: int) -> P:
    """The part of a training that a step, counted from 0, is in; raises IndexError for a
    step after the last.
    """
    left = step
    for phase in phases:
        if left < phase.steps:
            return phase
        left -= phase.steps
    raise IndexError(step)


class _Prepared(Dataset[T], Generic[T]):
    def __init__(self, learned_in: Callable[[int], T], steps: range) -> None:
        self.learned_in, self.steps = learned_in, steps

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int) -> T:
        return self.learned_in(self.steps[place])


def prepared(learned_in: Callable[[int], T], steps: range) -> Iterator[tuple[int, T]]:
    """The steps, counted from 1, each with what is learned in it, which another process
    makes ahead; `steps`, and what `learned_in` is given, are counted from 0.
    """
    ahead = _Prepared(learned_in, steps)
    batches = DataLoader(ahead, batch_size=None, num_workers=1, prefetch_factor=8)
    return enumerate(batches, start=steps.start + 1)


class Clock:
    """The running mean of a training's loss, and the minutes that it takes."""

    def __init__(self, minutes: float = 0.0, loss: float | None = None) -> None:
        """Starts now; `minutes` were taken before, and the mean was at `loss`."""
        self._began = time.monotonic() - 60 * minutes
        self._loss = loss

    @classmethod
    def after(cls, log: Sequence[Json]) -> Clock:
        """Goes on after the last row of a log; starts anew after none."""
        return cls(log[-1]["minutes"], log[-1]["loss"]) if log else cls()

    def take(self, loss: float) -> None:
        """Add one step."""
        self._loss = loss if self._loss is None else 0.98 * self._loss + 0.02 * loss

    def row(self, step: int, shares: Mapping[str, float], *, digits: int) -> dict[str, float]:
        """A row of the log, also printed: step, loss, `shares`, minutes."""
        minutes = round((time.monotonic() - self._began) / 60, 1)
        loss = round(self._loss or 0.0, digits)
        row = {"step": step, "loss": loss, **shares, "minutes": minutes}
        print(json.dumps(row), flush=True)
        return row


def write_notes(notes: Json, folder: Path) -> None:
    """Write `training.json`: how a model was trained."""
    write_file(folder / "training.json", json.dumps(notes, indent=2) + "\n")
