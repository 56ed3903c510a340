"""State of a dry run of this process: models and searches are not called, and their calls are
recorded instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from vrag_kit.errors import NotGeneratedError
from vrag_kit.log import logger
from vrag_kit.workspace import display_path

STAND_IN = "stand_in"
"""Key in `Answer.fields` of a placeholder answer; its value is `Forecast.mark`."""
_WORDS = "nobody was asked, these words take the place of an answer and are about as long as one"

_Result = TypeVar("_Result")


@dataclass(slots=True)
class Forecast:
    """The records of a dry run so far."""

    scratch: Path
    """Temporary folder; placeholder answers may be stored only below it."""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    """Identifies the placeholder answers of this dry run."""
    stores: set[Path] = field(default_factory=set)
    """Copies of the answer stores that were opened, below `scratch`."""
    models: list[object] = field(default_factory=list)
    """Dry-run generators that were opened, each with the prompts it received."""
    any_order: set[str] = field(default_factory=set)
    """Retrievers that were not run yet; other images replace their results."""
    corpora: list[object] = field(default_factory=list)
    """Corpora searched by vectors, which would be embedded."""
    asks: bool = True
    """Whether models may be opened, to record the prompts they would receive."""
    known: dict[tuple[object, ...], object] = field(default_factory=dict)
    """Results cached by `memoize_dry_run`, by key."""


@dataclass(frozen=True, slots=True, eq=False)
class IdentityKey:
    """A cache key that compares an object by identity, not by equality."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


_now: list[Forecast] = []


@contextmanager
def dry_run(scratch: Path) -> Iterator[Forecast]:
    """Make this whole process a dry run within the block."""
    _now.append(Forecast(scratch))
    try:
        yield _now[-1]
    finally:
        _now.pop()


def current_dry_run() -> Forecast | None:
    """Return the current dry run; None where models are really called."""
    return _now[-1] if _now else None


def is_scratch_path(path: Path) -> bool:
    """Return whether a file lies in the temporary folder of the current dry run."""
    forecast = current_dry_run()
    if forecast is None:
        return False
    return path.resolve().is_relative_to(forecast.scratch.resolve())


def placeholder_text(number: int) -> str:
    """Return a placeholder answer, about as long as a real one. Texts of different numbers differ
    but have the same length, which keeps token counts independent of earlier runs.
    """
    return f"{_WORDS} ({number:08d})"


def memoize_dry_run(make: Callable[[], _Result], *key: object) -> _Result:
    """Return `make()`; a dry run calls it only once for each `key`, because its notebooks repeat
    work. Callers must not modify the result.
    """
    forecast = current_dry_run()
    if forecast is None:
        return make()
    if key not in forecast.known:
        forecast.known[key] = make()
    return cast(_Result, forecast.known[key])


def refuse_generation(folder: Path, edition: str, megabytes: int, command: str) -> None:
    """Raise `NotGeneratedError` for the edition "full" in a dry run that counts model calls.
    Generating it takes minutes. For a smaller edition, note that it is generated.
    """
    forecast = current_dry_run()
    if forecast is None or not forecast.asks:
        return
    if edition == "full":
        raise NotGeneratedError(
            f"{display_path(folder)} is not drawn yet, or by older code ({megabytes} MB; minutes"
            " of work"
            f" for all cores). The run draws it; `{command} {display_path(folder)}` does now, and"
            " then"
            " what is asked can be counted."
        )
    logger.warning(f"{display_path(folder)} was not drawn yet, and is now ({megabytes} MB)")
