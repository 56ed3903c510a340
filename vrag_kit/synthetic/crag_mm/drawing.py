"""CRAG-MM generated with the Field Guide's organisms, in the layouts of the real data and indexes.

    <folder>/single-turn/data/…-00000-of-00002.parquet          the rows of both splits
    <folder>/single-turn/marks.jsonl                            annotations beyond the public data
    <folder>/multi-turn/…                                       the same of conversations
    <folder>/images/url/…                                       images with a URL
    <folder>/image-index-public-test/entries.jsonl, images/…    the knowledge graph
    <folder>/web-index-public-test/pages.jsonl                  the small web
    <folder>/edition.json     edition and version of the generator; complete once all is written

The same edition gives the same bytes. Generating that was interrupted goes on where it was.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import images_folder
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.processes import worker_pool
from vrag_kit.synthetic.crag_mm.edition import EDITIONS, CragMMEdition, plan_edition
from vrag_kit.synthetic.crag_mm.indexes import write_indexes
from vrag_kit.synthetic.crag_mm.rows import MULTI_TURN, SINGLE_TURN, write_sessions
from vrag_kit.synthetic.generate import EditionSpec, check_edition, clear_outputs, generate_once
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.types import Json

_KINDS = (SINGLE_TURN, MULTI_TURN)


def generate_crag_mm(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.

    `workers` processes draw at once (default: one a core). Raises `VragError` for an unknown
    edition, for a folder that holds other data or cannot be written, and in a script that
    generates without `if __name__ == "__main__":`.
    """
    check_edition(edition, EDITIONS, "the drawn CRAG-MM")
    spec = EDITIONS[edition]
    version = generator_version("crag_mm/edition", "crag_mm/indexes", "crag_mm/rows")
    note = {"edition": edition, **asdict(spec), "drawn_by": version}
    draw = partial(_draw, spec, workers or os.cpu_count() or 1)
    drawing = EditionSpec(what="CRAG-MM", by="generate_crag_mm", megabytes=60)
    return generate_once(folder, note, draw, drawing)


def _draw(edition: CragMMEdition, workers: int, folder: Path, note: Json) -> None:
    outputs = [*(folder / kind for kind in _KINDS), images_folder(folder / SINGLE_TURN)]
    for name in edition.splits:
        outputs += index_folders(folder, name)
    clear_outputs(folder, outputs, note)
    splits = plan_edition(edition)
    with ThreadPoolExecutor(1) if workers == 1 else worker_pool(workers) as pool:
        for split in splits:
            write_indexes(edition, split, folder, pool)
        for kind in _KINDS:
            write_sessions(edition, splits, kind, folder, pool)
