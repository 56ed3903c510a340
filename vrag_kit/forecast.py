"""Whether this process only forecasts: then models say nothing and nothing is searched,
and what would have been asked is noted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from vrag_kit.errors import NotDrawnError
from vrag_kit.workspace import shown

STAND_IN = "stand_in"
"""In an answer's fields: the mark of the forecast that put it in the place of a real one."""
_WORDS = "nobody was asked, these words take the place of an answer and are about as long as one"
_NUMBER = re.compile(rf"(?<={_WORDS}) \(\d+\)$")

Made = TypeVar("Made")


@dataclass(slots=True)
class Forecast:
    """What a forecast has come upon so far."""

    scratch: Path
    """The folder below which alone stand-in answers may be kept; it is thrown away."""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    """What its stand-in answers are known by."""
    stores: set[Path] = field(default_factory=set)
    """The copies of answer stores that were opened, below `scratch`."""
    models: list[object] = field(default_factory=list)
    """The stand-ins of models that were opened, each with what it was asked."""
    any_order: set[str] = field(default_factory=set)
    """Retrievers whose search was not made yet, so that other images stand in its place."""
    corpora: list[object] = field(default_factory=list)
    """What is searched by vectors, which would be embedded."""
    asks: bool = True
    """Whether models may be opened, to note what they would be asked."""
    cut: list[str] = field(default_factory=list)
    """Which numbers of documents were cut to what there is, and other notes, in words."""
    known: dict[tuple[object, ...], object] = field(default_factory=dict)
    """What was made so far; see `once`."""

    def note(self, line: str) -> None:
        """Note a line in `cut`, once."""
        if line not in self.cut:
            self.cut.append(line)


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """Stands in a key for a thing itself, not for all that equal it."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


_now: list[Forecast] = []


@contextmanager
def forecasting(scratch: Path) -> Iterator[Forecast]:
    """Forecast, in this whole process, as long as this lasts."""
    _now.append(Forecast(scratch))
    try:
        yield _now[-1]
    finally:
        _now.pop()


def current_forecast() -> Forecast | None:
    """The forecast that is being made; None where models are really asked."""
    return _now[-1] if _now else None


def may_keep_stand_ins(path: Path) -> bool:
    """Whether a file is one of the forecast's own, which is thrown away."""
    forecast = current_forecast()
    if forecast is None:
        return False
    return path.resolve().is_relative_to(forecast.scratch.resolve())


def stand_in_words(number: int) -> str:
    """What stands in for an answer, about as long as one; no two numbers say the same, and
    all are of one length, so that a dry run counts the same tokens whatever ran before.
    """
    return f"{_WORDS} ({number:08d})"


def without_number(words: str) -> str:
    """An answer's words; in a forecast, a stand-in's without its number, which are the
    same for all.
    """
    return words if current_forecast() is None else _NUMBER.sub("", words)


def once(make: Callable[[], Made], *key: object) -> Made:
    """What `make` makes; in a forecast, whose notebooks do much alike, only once for each
    `key`. Nobody may change it.
    """
    forecast = current_forecast()
    if forecast is None:
        return make()
    if key not in forecast.known:
        forecast.known[key] = make()
    return cast(Made, forecast.known[key])


def read_once(read: Callable[[], Made], file: Path, *key: object) -> Made:
    """What `read` reads from a file; in a forecast, only once for each `key`, as long as
    the file stays as it is.
    """
    if current_forecast() is None or not file.is_file():
        return read()
    stat = file.stat()
    return once(read, str(file), stat.st_size, stat.st_mtime_ns, *key)


def before_drawing(folder: Path, edition: str, megabytes: int, command: str) -> None:
    """In a forecast of what is asked, raise `NotDrawnError` instead of drawing for minutes
    (the edition "full"), and note that a smaller one is drawn.
    """
    forecast = current_forecast()
    if forecast is None or not forecast.asks:
        return
    if edition == "full":
        raise NotDrawnError(
            f"{shown(folder)} is not drawn yet, or by older code ({megabytes} MB; minutes of work"
            f" for all cores). The run draws it; `{command} {shown(folder)}` does now, and then"
            " what is asked can be counted."
        )
    forecast.note(f"{shown(folder)} was not drawn yet, and is now ({megabytes} MB)")
