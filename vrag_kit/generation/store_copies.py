"""Copies of answer stores: of one moment, and the one that a forecast works with."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_forecast, may_keep_stand_ins


def place_of_store(path: Path) -> Path:
    """Where a store is opened: at `path`, but in a forecast at a copy of its own, which
    is thrown away, wherever the real one lies and however its folder's parameter is
    called.
    """
    forecast = current_forecast()
    if forecast is None or path.is_dir():
        return path
    place = path
    if not may_keep_stand_ins(path):
        name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
        place = forecast.scratch / name / path.name
        place.parent.mkdir(exist_ok=True)
        if path.is_file() and not place.exists():
            copy_store(path, place)
    forecast.stores.add(place)
    return place


def copy_store(store: Path, target: Path) -> None:
    """Copy a store; one whose last writer was killed is first rolled back by SQLite,
    which has to write for that. Raises `VragError` for what is no store.
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
