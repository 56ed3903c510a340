"""CRAG-MM as a notebook's parameters name it: a drawn edition, or the real rows and
indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm import load_crag_mm
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.synthetic.crag_mm.drawing import MULTI_TURN, SINGLE_TURN, generate_crag_mm
from vrag_kit.synthetic.crag_mm.larger_web import larger_web
from vrag_kit.synthetic.editions import CRAG_MM_EDITIONS, edition_or_rows
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

WEBS = ("standard", "large")
"""The webs of a drawn edition: the one that is drawn, and `larger_web`."""
EgoSize = Sequence[int] | None
"""Width and height; None or nothing for pictures as they are."""


def open_single_turn(
    crag_mm_single: str,
    split: str = "validation",
    *,
    indexes: str = "",
    images: str = "",
    egocentric_size: EgoSize = None,
    web_index: str = WEBS[0],
) -> Benchmark:
    """The single-turn questions of a synthetic edition (its name in `CRAG_MM_EDITIONS`), generated
    if its folder is missing, over its knowledge graph and its web; or of the rows in a
    folder or a data set of the hub, over the split's indexes in the folder `indexes` ("":
    none), which have the names that they have in a drawn edition.

    `images` and `egocentric_size` as `load_crag_mm` says; `web_index`, of a synthetic
    edition, is one of `WEBS`. Raises `VragError` as drawing and
    loading do, for a name that is neither, for indexes or pictures named beside a drawn
    edition, for a folder without indexes of the split, for a web that is none of `WEBS`,
    and for another than the first beside rows.
    """
    if web_index not in WEBS:
        raise VragError(
            f"web_index is {web_index!r}; expected {' or '.join(map(repr, WEBS))}."
            f"{did_you_mean(web_index, WEBS)}"
        )
    is_larger = web_index != WEBS[0]
    if is_larger and crag_mm_single not in CRAG_MM_EDITIONS:
        raise VragError(
            f"web_index is {web_index!r} beside {crag_mm_single!r}, but is of synthetic editions"
            " alone; leave it out: the web of rows is the one in the folder 'indexes'."
        )
    usual = _open(SINGLE_TURN, crag_mm_single, split, indexes, images, egocentric_size)
    return larger_web(usual, CRAG_MM_EDITIONS[crag_mm_single], split) if is_larger else usual


def open_multi_turn(
    crag_mm_multi: str,
    split: str = "validation",
    *,
    indexes: str = "",
    images: str = "",
    egocentric_size: EgoSize = None,
) -> Benchmark:
    """The conversations, as `open_single_turn` opens single questions."""
    return _open(MULTI_TURN, crag_mm_multi, split, indexes, images, egocentric_size)


def _open(
    kind: str, name: str, split: str, indexes: str, images: str, egocentric_size: EgoSize
) -> Benchmark:
    if egocentric_size and (len(egocentric_size) != 2 or min(egocentric_size) < 1):
        raise VragError(
            f"egocentric_size is {list(egocentric_size)}; expected [width, height] in pixels, or"
            " [] for images as they are."
        )
    parameter = "crag_mm_single" if kind == SINGLE_TURN else "crag_mm_multi"
    rows, is_edition = edition_or_rows(
        parameter, name, CRAG_MM_EDITIONS, generate_crag_mm, indexes or images
    )
    image_index = web_index = None
    if is_edition:
        image_index, web_index = index_folders(Path(rows), split)
        rows = Path(rows) / kind
    elif indexes:
        image_index, web_index = _indexes(indexes, split)
    benchmark = load_crag_mm(
        rows,
        split,
        image_index=image_index,
        web_index=web_index,
        images=project_path(images) if images else None,
        egocentric_size=(egocentric_size[0], egocentric_size[1]) if egocentric_size else None,
    )
    if not is_edition:
        return benchmark
    return replace(benchmark, name=f"{name}-{kind}-{split.replace('_', '-')}")


def _indexes(indexes: str, split: str) -> tuple[Path | None, Path | None]:
    """The indexes of the split that a folder holds."""
    wanted = index_folders(project_path(indexes), split)
    image_index, web_index = (path if path.is_dir() else None for path in wanted)
    if image_index is None and web_index is None:
        raise VragError(
            f"indexes is {indexes!r}, which holds neither {wanted[0].name!r} nor"
            f" {wanted[1].name!r}; expected converted indexes of the split in it."
        )
    return image_index, web_index
