"""Draws and writes all splits of an edition."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm_index import MARKS, write_annotations
from vrag_kit.synthetic.crag_mm.edition import CragMMEdition, plan_edition
from vrag_kit.synthetic.crag_mm.indexes import write_indexes
from vrag_kit.synthetic.crag_mm.sessions import MULTI_TURN, SINGLE_TURN, write_sessions
from vrag_kit.types import Json


def write_splits(edition: CragMMEdition, folder: Path, pool: Executor) -> None:
    """Draw what an edition holds into `folder`, the workers of `pool` at once."""
    splits = plan_edition(edition)
    for drawn in splits:
        write_indexes(edition, drawn, folder, pool)
    for kind in (SINGLE_TURN, MULTI_TURN):
        marks: dict[str, Json] = {}
        for drawn in splits:
            marks |= write_sessions(edition, drawn, kind, folder, pool)
        write_annotations(folder / kind / MARKS, marks)
