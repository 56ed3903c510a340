"""Copies of answer stores: snapshots, and the working copy of a dry run."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_dry_run, is_scratch_path


def store_path(path: Path) -> Path:
    """Return where to open a store: at `path`, or in a dry run at a temporary copy.

    This is independent of where the store lies and which parameter names its folder.
    """
    forecast = current_dry_run()
    if forecast is None or path.is_dir():
        return path
    place = path
    if not is_scratch_path(path):
        name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
        place = forecast.scratch / name / path.name
        place.parent.mkdir(exist_ok=True)
        if path.is_file() and not place.exists():
            copy_store(path, place)
    forecast.stores.add(place)
    return place


def copy_store(store: Path, target: Path) -> None:
    """Copy a store to `target`. SQLite first rolls back a store whose last writer was killed, which
    needs write access. Raises `VragError` for a file that is not a store.
    """
    try:
        try:
            _back_up(store, target, "ro")
        except sqlite3.OperationalError:
            _back_up(store, target, "rw")
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise VragError(
            f"{store}: cannot be read ({error}); expected a store of answers. Wait for who is"
            " writing to it, or move it away."
        ) from error


def _back_up(store: Path, target: Path, mode: str) -> None:
    place = f"{store.resolve().as_uri()}?mode={mode}"
    with (
        closing(sqlite3.connect(place, uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
