"""Draws and writes all splits of an edition."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_marks import MARKS, write_marks
from vrag_kit.fieldguide.worn.edition import Edition, plan
from vrag_kit.fieldguide.worn.indexes import write_indexes
from vrag_kit.fieldguide.worn.sessions import MULTI_TURN, SINGLE_TURN, write_sessions
from vrag_kit.plain import Json


def write_splits(edition: Edition, folder: Path, pool: Executor) -> None:
    """Draw what an edition holds into `folder`, the workers of `pool` at once."""
    splits = plan(edition)
    for drawn in splits:
        write_indexes(edition, drawn, folder, pool)
    for kind in (SINGLE_TURN, MULTI_TURN):
        marks: dict[str, Json] = {}
        for drawn in splits:
            marks |= write_sessions(edition, drawn, kind, folder, pool)
        write_marks(folder / kind / MARKS, marks)
