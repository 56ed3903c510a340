"""Draws an edition into a folder once: `edition.json` there names the edition and the code
that drew it, says how it is drawn again, and is complete once all is written.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import NotGeneratedError, VragError
from vrag_kit.files import lock_folder, write_file
from vrag_kit.log import logger
from vrag_kit.types import Json
from vrag_kit.workspace import display_path

NOTE = "edition.json"
_AGAIN = "again"
"""Key of the note: what is typed to draw it, but for the folder. It says nothing about
what is drawn.
"""
_NAMES = {
    "generate_crag_mm": "field-guide-crag-mm",
    "generate_mrag_bench": "field-guide-mrag-bench",
    "generate_suite": "field-guide-mrag-suite",
}
"""Function that draws → its full edition as `vrag draw` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditionSpec:
    """What is drawn, for messages."""

    what: str  # "CRAG-MM"
    by: str  # the function that is called
    megabytes: int  # of the folder


def check_edition(edition: str, known: Collection[str], what: str) -> None:
    """Raise `VragError` for an edition that there is not."""
    if edition not in known:
        raise VragError(
            f"unknown edition {edition!r} of {what}; expected one of {', '.join(map(repr, known))}."
        )


def refuse_generation(folder: Path, edition: str, megabytes: int, command: str) -> None:
    """Raise `NotGeneratedError` for the edition "full" in a dry run that counts model calls.
    Generating it takes minutes. For a smaller edition, note that it is generated.
    """
    current = current_dry_run()
    if current is None or not current.asks:
        return
    place = display_path(folder)
    if edition == "full":
        raise NotGeneratedError(
            f"{place} is not drawn yet, or by older code ({megabytes} MB; minutes of work for all"
            f" cores). The run draws it; `{command} {place}` does now, and then what is asked can"
            " be counted."
        )
    logger.warning(f"{place} was not drawn yet, and is now ({megabytes} MB)")


def generate_once(
    folder: Path | str, note: Json, draw: Callable[[Path, Json], None], drawing: EditionSpec
) -> Path:
    """The folder, once it holds what `note` tells: `draw(folder, note)` is called unless it
    does, by one process at a time.

    `draw` begins with `clear_outputs`. Raises `VragError` for a folder that cannot be written,
    and in a script that draws without `if __name__ == "__main__":`.
    """
    folder, note = Path(folder), json.loads(json.dumps(note))
    done = {**note, "complete": True}
    small = "" if note["edition"] == "full" else f"-{note['edition']}"
    command = f"vrag draw {_NAMES[drawing.by]}{small}"
    if _read(folder) == done:
        return folder
    refuse_generation(folder, note["edition"], drawing.megabytes, command)
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise VragError(
            "a drawing process has begun to draw, for it runs this script from its top; put the"
            f' call of {drawing.by} below `if __name__ == "__main__":`.'
        )
    try:
        with lock_folder(folder, f"drawing {drawing.what}"):
            if _read(folder) != done:
                draw(folder, note)
                write_file(folder / NOTE, json.dumps({**done, _AGAIN: command}, indent=1))
    except OSError as error:
        raise VragError(
            f"{folder}: {drawing.what} cannot be drawn there ({error.strerror or error}). Choose a"
            f" folder with write access and {drawing.megabytes} MB free."
        ) from error
    return folder


def clear_outputs(folder: Path, rooms: Sequence[Path], note: Json) -> None:
    """Remove the folders `rooms` that other code or another edition drew, keep
    those that this one has begun, and note that it has.

    Raises `VragError` for one that this kit did not draw.
    """
    there = [room for room in rooms if room.exists()]
    before, begun = _read(folder), {**note, "complete": False}
    if there and not before:
        raise VragError(
            f"{folder}: holds {there[0].name!r}, which was not drawn by this kit. Choose another"
            " folder."
        )
    if there and before != begun:
        logger.info(f"{folder}: drawn by other code or as another edition; drawing it again")
        for room in there:
            shutil.rmtree(room)
    write_file(folder / NOTE, json.dumps(begun, indent=1))


def _read(folder: Path) -> Json:
    """What a note says of what is drawn."""
    try:
        told = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        return {name: value for name, value in told.items() if name != _AGAIN}
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
