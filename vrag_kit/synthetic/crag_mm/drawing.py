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

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import SPLITS, images_folder
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.processes import available_cores, worker_pool
from vrag_kit.synthetic.crag_mm.edition import EDITIONS, plan_edition
from vrag_kit.synthetic.crag_mm.indexes import write_indexes
from vrag_kit.synthetic.crag_mm.rows import MULTI_TURN, SINGLE_TURN, write_sessions
from vrag_kit.synthetic.generate import generate_once

_KINDS = (SINGLE_TURN, MULTI_TURN)


def generate_crag_mm(edition: str, folder: Path | str, *, workers: int | None = None) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.

    `workers` processes draw at once (default: one a core). Raises as `generate_once` does.
    """
    indexes = chain.from_iterable(index_folders(Path(), split) for split in SPLITS)
    outputs = [*_KINDS, str(images_folder(Path(SINGLE_TURN))), *map(str, indexes)]
    draw = partial(_draw, edition, workers or available_cores())
    return generate_once("field-guide-crag-mm", edition, EDITIONS, folder, draw, outputs)


def _draw(edition: str, workers: int, folder: Path) -> None:
    size = EDITIONS[edition]
    splits = plan_edition(size)
    with ThreadPoolExecutor(1) if workers == 1 else worker_pool(workers) as pool:
        for split in splits:
            write_indexes(size, split, folder, pool)
        for kind in _KINDS:
            write_sessions(size, splits, kind, folder, pool)
