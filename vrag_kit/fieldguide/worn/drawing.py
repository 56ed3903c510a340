"""CRAG-MM drawn with the guide's organisms, in the layouts of the real data and indexes.

    <folder>/single-turn/data/…-00000-of-00002.parquet          the rows of both splits
    <folder>/single-turn/marks.jsonl                            what the public data do not tell
    <folder>/multi-turn/…                                       the same of conversations
    <folder>/images/url/…                                       pictures with an address
    <folder>/image-index-public-test/entries.jsonl, images/…    the knowledge graph
    <folder>/web-index-public-test/pages.jsonl                  the small web
    <folder>/edition.json     edition and hash of the code; complete once all is written

The same edition gives the same bytes. A drawing that was cut off goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_marks import MARKS, write_marks
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.pages import hash_of_modules
from vrag_kit.fieldguide.worn.edition import EDITIONS, Edition, plan
from vrag_kit.fieldguide.worn.indexes import index_folders, write_indexes
from vrag_kit.fieldguide.worn.sessions import (
    MULTI_TURN,
    SINGLE_TURN,
    session_folders,
    write_sessions,
)
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.plain import Json

_DRAWN_BY = ("shapes", "traits", "views", "scenarios/painting")
_NEEDED = {"full": 60, "small": 5}  # megabytes


def draw_crag_mm(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Draw an edition ("full" or "small") into `folder` unless it is there already;
    returns the folder.

    `workers` processes draw at once (default: one a core). Raises `VragError` for an
    unknown edition, for a folder that holds other data or cannot be written, and in a
    script that draws without `if __name__ == "__main__":`.
    """
    if edition not in EDITIONS:
        raise VragError(
            f"unknown edition {edition!r} of the drawn CRAG-MM; expected one of"
            f" {', '.join(map(repr, EDITIONS))}."
        )
    folder = Path(folder)
    told = {"edition": edition, **asdict(EDITIONS[edition]), "drawn_by": _hash()}
    note = json.loads(json.dumps(told))
    done = {**note, "complete": True}
    if _read(folder) == done:
        return folder
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise VragError(
            "a drawing process has begun to draw, for it runs this script from its top; put the"
            ' call of draw_crag_mm below `if __name__ == "__main__":`.'
        )
    try:
        with one_at_a_time(folder, "drawing CRAG-MM"):
            if _read(folder) != done:
                _make_room(EDITIONS[edition], folder, note)
                _draw(EDITIONS[edition], folder, workers or os.cpu_count() or 1)
                write_file(folder / "edition.json", json.dumps(done, indent=1))
    except OSError as error:
        raise VragError(
            f"{folder}: CRAG-MM cannot be drawn there ({error.strerror or error}). Choose a folder"
            f" with write access and {_NEEDED[edition]} MB free; what was drawn is kept."
        ) from error
    return folder


def _make_room(edition: Edition, folder: Path, note: Json) -> None:
    """Remove what other code or another edition drew; keep what this one has begun."""
    rooms = list(session_folders(folder))
    for split in edition.splits:
        rooms += index_folders(folder, split)
    there = [room for room in rooms if room.exists()]
    before = _read(folder)
    if there and not before:
        raise VragError(
            f"{folder}: holds {there[0].name!r}, which was not drawn by this kit. Choose another"
            " folder."
        )
    begun = {**note, "complete": False}
    if there and before != begun:
        print(f"{folder}: drawn by other code or as another edition; drawing it again", flush=True)
        for room in there:
            shutil.rmtree(room)
    write_file(folder / "edition.json", json.dumps(begun, indent=1))


def _draw(edition: Edition, folder: Path, workers: int) -> None:
    splits = plan(edition)
    with _pool(workers) as pool:
        for split in splits:
            write_indexes(edition, split, folder, pool)
        for kind in (SINGLE_TURN, MULTI_TURN):
            marks: dict[str, Json] = {}
            for split in splits:
                marks |= write_sessions(edition, split, kind, folder, pool)
            write_marks(folder / kind / MARKS, marks)


def _pool(workers: int) -> Executor:
    """Draws beside us; one worker needs no process of its own."""
    if workers == 1:
        return ThreadPoolExecutor(1)
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _hash() -> str:
    """Changes with the code that draws an edition."""
    here = sorted(Path(__file__).parent.glob("*.py"))
    own = hashlib.sha256(b"".join(path.read_bytes() for path in here)).hexdigest()[:16]
    return f"{hash_of_modules(_DRAWN_BY)}-{own}"


def _read(folder: Path) -> Json:
    try:
        return dict(json.loads((folder / "edition.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
