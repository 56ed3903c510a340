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

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from vrag_kit.processes import worker_pool
from vrag_kit.synthetic.crag_mm.edition import EDITIONS, CragMMEdition
from vrag_kit.synthetic.crag_mm.indexes import index_folders
from vrag_kit.synthetic.crag_mm.sessions import session_folders
from vrag_kit.synthetic.crag_mm.splits import write_splits
from vrag_kit.synthetic.generate import EditionSpec, check_edition, clear_outputs, generate_once
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.types import Json

_DRAWN_BY = "crag_mm/splits"
"""The module that decides, with all that it imports, what is drawn."""


def generate_crag_mm(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Draw an edition ("full" or "small") into `folder` unless it is there already;
    returns the folder.

    `workers` processes draw at once (default: one a core). Raises `VragError` for an
    unknown edition, for a folder that holds other data or cannot be written, and in a
    script that draws without `if __name__ == "__main__":`.
    """
    check_edition(edition, EDITIONS, "the drawn CRAG-MM")
    told = {
        "edition": edition,
        **asdict(EDITIONS[edition]),
        "drawn_by": generator_version(_DRAWN_BY),
    }
    draw = partial(_draw, EDITIONS[edition], workers or os.cpu_count() or 1)
    drawing = EditionSpec(what="CRAG-MM", by="generate_crag_mm", megabytes=60)
    return generate_once(folder, told, draw, drawing)


def _draw(edition: CragMMEdition, workers: int, folder: Path, note: Json) -> None:
    rooms = list(session_folders(folder))
    for split in edition.splits:
        rooms += index_folders(folder, split)
    clear_outputs(folder, rooms, note)
    with _pool(workers) as pool:
        write_splits(edition, folder, pool)


def _pool(workers: int) -> Executor:
    """Draws beside us; one worker needs no process of its own."""
    if workers == 1:
        return ThreadPoolExecutor(1)
    return worker_pool(workers)
